/**
 * Credentials as they are on disk at the moment they are asked for. Looking costs a stat of each
 * file; the files are read again only when something about them has changed, so that a mounted
 * Secret rotates without a restart and a busy adapter does not read the same bytes all day.
 *
 * What is replaced while it is read is not used: whoever writes in one piece (a rename, a swapped
 * link, as Kubernetes does) is never seen half-way.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";

/** Fields of one credential by name. */
export type Credential = Readonly<Record<string, string>>;

/** Why a credential cannot be used. The message holds no content of the file. */
export class CredentialError extends Error {}

const credentialBytesMax = 64 * 1024;
const credentialFieldsMax = 32;
const pathsMax = 1_000;
/** How often files are read anew that change meanwhile. */
const readsMax = 3;
/**
 * File times are coarse: two changes within one tick carry the same. So what had changed so shortly
 * before it was read is read again at the next look, however equal it seems.
 */
const tickMs = 1_000;

/** What one look saw of the files without reading them. */
interface Traces {
  readonly isFolder: boolean;
  /** Names in a folder, without those that begin with a dot: the mount's own links. */
  readonly names: readonly string[];
  /** Device, inode, size and times of each file, links followed. */
  readonly text: string;
  readonly changedAtMs: number;
}

interface Known {
  readonly traces: Traces;
  readonly credential: Credential;
  /** False: it had changed within the same tick as it was read. */
  readonly isSettled: boolean;
}

interface Looks {
  readonly current: Promise<Credential>;
  next: Promise<Credential> | undefined;
}

/** See the file comment. Keeps the credentials of at most 1000 paths. */
export class CredentialFiles {
  readonly #wallMs: () => number;
  readonly #known = new Map<string, Known>();
  readonly #looks = new Map<string, Looks>();

  /** @param wallMs epoch milliseconds, by the clock that file times come from */
  constructor(wallMs: () => number = Date.now) {
    this.#wallMs = wallMs;
  }

  /**
   * The credential in a folder (one file a field) or a file (JSON or YAML), by a look that begins
   * after this call; calls that wait at the same time share one. Rejects with CredentialError, or
   * with the file system's own error.
   */
  read(path: string): Promise<Credential> {
    const looks = this.#looks.get(path);
    if (looks === undefined) return this.#begin(path);
    const begin = (): Promise<Credential> => this.#begin(path);
    looks.next ??= looks.current.then(begin, begin);
    return looks.next;
  }

  #begin(path: string): Promise<Credential> {
    const current = this.#look(path);
    const looks: Looks = { current, next: undefined };
    this.#looks.set(path, looks);
    const end = (): void => {
      if (looks.next === undefined) this.#looks.delete(path);
    };
    current.then(end, end);
    return current;
  }

  async #look(path: string): Promise<Credential> {
    const known = this.#known.get(path);
    let before = await tracesOf(path);
    if (known?.isSettled === true && known.traces.text === before.text) return known.credential;
    for (let reads = 1; reads <= readsMax; reads += 1) {
      const readAtMs = this.#wallMs();
      const reading = readCredential(path, before);
      // What it says counts only when the files have stood still meanwhile, an error too.
      await Promise.allSettled([reading]);
      const after = await tracesOf(path);
      if (before.text === after.text) {
        const credential = await reading;
        const isSettled = readAtMs - after.changedAtMs > tickMs;
        this.#remember(path, { traces: after, credential, isSettled });
        return credential;
      }
      before = after;
    }
    if (known !== undefined) return known.credential;
    throw new CredentialError("it changes while it is read");
  }

  #remember(path: string, known: Known): void {
    this.#known.delete(path);
    this.#known.set(path, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= pathsMax) break;
      this.#known.delete(oldest);
    }
  }
}

async function tracesOf(path: string): Promise<Traces> {
  const own = await stat(path, { bigint: true });
  const isFolder = own.isDirectory();
  const names = isFolder ? await fieldNames(path) : [];
  const files = await Promise.all(names.map((name) => stat(join(path, name), { bigint: true })));
  const all = [own, ...files];
  const text = all
    .map(({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(" "))
    .join("\n");
  const changedAtMs = Math.max(...all.map(({ ctimeMs }) => Number(ctimeMs)));
  return { isFolder, names, text: [...names, text].join("\n"), changedAtMs };
}

async function fieldNames(folder: string): Promise<readonly string[]> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith("."));
  if (names.length > credentialFieldsMax) throw new CredentialError("too many fields");
  return names.toSorted();
}

async function readCredential(path: string, { isFolder, names }: Traces): Promise<Credential> {
  const fields = isFolder ? await readFolder(path, names) : await readDocument(path);
  if (Object.keys(fields).length === 0) throw new CredentialError("no field in it");
  return fields;
}

/** A mounted Secret: one file a field. */
async function readFolder(folder: string, names: readonly string[]): Promise<Credential> {
  const fields: Record<string, string> = {};
  for (const name of names) {
    const text = await readBounded(join(folder, name));
    fields[name] = text.replace(/\r?\n$/, "");
  }
  return fields;
}

async function readDocument(path: string): Promise<Credential> {
  const text = await readBounded(path);
  let root: unknown;
  try {
    // "silent" would take what it could make out of a broken file.
    root = parseYaml(text, { maxAliasCount: 0, logLevel: "error" });
  } catch (_syntax) {
    // The parser's message quotes the file.
    throw new CredentialError("neither JSON nor YAML");
  }
  const isMapping = typeof root === "object" && root !== null && !Array.isArray(root);
  const entries = isMapping ? Object.entries(root ?? {}) : [];
  if (!entries.every((entry): entry is [string, string] => typeof entry[1] === "string")) {
    throw new CredentialError("every field must be a string");
  }
  return Object.fromEntries(entries);
}

async function readBounded(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > credentialBytesMax)
    throw new CredentialError(`larger than ${credentialBytesMax} bytes`);
  return readFile(path, "utf8");
}
