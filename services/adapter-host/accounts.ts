/**
 * The accounts file: which vendor accounts this adapter may use, where, and with which credential.
 *
 *     accounts:
 *       default:
 *         endpointHosts: [livekit.example.com, "*.livekit.example.com"]
 *         credentialFile: credentials/default   # a folder (one file a field) or a JSON or YAML file
 *         callsPerSecond: 20
 *
 * Both the file and the credentials are looked at again when they are used, so a mounted Secret
 * rotates without a restart. Credential values are registered with the redaction, but for fields
 * that the adapter names as public (an API key's id, which may be part of a realm).
 */
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parseDocument } from "yaml";

import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { registerSecret } from "../process/redaction.ts";
import { isHostPattern } from "../vendor-http/allow-list.ts";
import { CredentialError, CredentialFiles } from "./credential-files.ts";
import type { Credential } from "./credential-files.ts";

/** One named account. */
export interface Account {
  readonly name: string;
  readonly endpointHosts: readonly string[];
  /** Absolute path of a folder or file. */
  readonly credentialFile: string;
  /** Vendor calls a second, over all calls with this account; absent: the adapter's default. */
  readonly callsPerSecond?: number;
}

/** Finds accounts and their credentials. */
export interface Accounts {
  /** Names of all accounts, as they are now. */
  readonly names: readonly string[];
  /** @param name empty: the account called "default" */
  find(name: string): Promise<Account | undefined>;
  /** Fields of the account's credential. BAD_CREDENTIAL when it cannot be read. */
  credentialOf(account: Account): Promise<Credential>;
}

const fileBytesMax = 1024 * 1024;
const accountsMax = 1000;
const defaultAccountName = "default";
/** How long what was read is used before the file is looked at again. */
const freshMs = 1000;

export interface AccountsOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Credential fields that are no secrets. */
  readonly publicFields: readonly string[];
}

/** Reads the file once; throws one error that names every mistake in it. */
export async function openAccounts(options: AccountsOptions): Promise<Accounts> {
  const watched = new WatchedAccounts(options);
  await watched.load();
  return watched;
}

class WatchedAccounts implements Accounts {
  readonly #path: string;
  readonly #options: AccountsOptions;
  readonly #credentials = new CredentialFiles();
  #accounts: ReadonlyMap<string, Account> = new Map();
  #version = "";
  #checkedAtMs = 0;

  constructor(options: AccountsOptions) {
    this.#path = resolve(options.path);
    this.#options = options;
  }

  get names(): readonly string[] {
    return [...this.#accounts.keys()];
  }

  async load(): Promise<void> {
    this.#version = await versionOf(this.#path);
    this.#accounts = parseAccounts(await readBounded(this.#path), this.#path);
    this.#checkedAtMs = this.#options.clock.monotonicMs();
  }

  async find(name: string): Promise<Account | undefined> {
    if (this.#options.clock.monotonicMs() - this.#checkedAtMs >= freshMs) await this.#reload();
    return this.#accounts.get(name === "" ? defaultAccountName : name);
  }

  async credentialOf(account: Account): Promise<Credential> {
    try {
      const fields = await this.#credentials.read(account.credentialFile);
      for (const [name, value] of Object.entries(fields)) {
        if (!this.#options.publicFields.includes(name)) registerSecret(value);
      }
      return fields;
    } catch (cause) {
      const why = cause instanceof CredentialError ? cause.message : "the file cannot be read";
      const message = `credential of account "${account.name}": ${why}`;
      throw new ProviderError("BAD_CREDENTIAL", message, { cause });
    }
  }

  /** A file that is broken now changes nothing: the last good one stays in force, and the log says so. */
  async #reload(): Promise<void> {
    this.#checkedAtMs = this.#options.clock.monotonicMs();
    try {
      if ((await versionOf(this.#path)) === this.#version) return;
      await this.load();
      this.#options.log.info(
        { path: this.#path, accounts: this.#accounts.size },
        "accounts read again",
      );
    } catch (error) {
      this.#options.log.warn(
        { path: this.#path, error },
        "accounts cannot be read, the last ones stay",
      );
    }
  }
}

/** Exported for its test: the file's text to accounts; throws one error with all mistakes. */
export function parseAccounts(text: string, path: string): ReadonlyMap<string, Account> {
  const root = parseAccountsYaml(text, path);
  const entries = Object.entries(recordOf(recordOf(root)?.["accounts"]) ?? {});
  const mistakes: string[] = [];
  if (entries.length === 0) mistakes.push('"accounts" names no account');
  if (entries.length > accountsMax) mistakes.push(`more than ${accountsMax} accounts`);
  const accounts = new Map<string, Account>();
  for (const [name, value] of entries.slice(0, accountsMax)) {
    const account = parseAccount(name, recordOf(value) ?? {}, path, mistakes);
    accounts.set(name, account);
  }
  if (mistakes.length > 0) throw new Error(`accounts file ${path}: ${mistakes.join("; ")}`);
  return accounts;
}

/** Says where, and not what: the parser quotes the line, and somebody may have put a key there. */
function parseAccountsYaml(text: string, path: string): unknown {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error === undefined) return document.toJS({ maxAliasCount: 0 });
  const [at] = error.linePos ?? [];
  const where = at === undefined ? "" : ` at line ${at.line}, column ${at.col}`;
  throw new Error(`accounts file ${path}: neither JSON nor YAML${where}`);
}

const accountFields = ["endpointHosts", "credentialFile", "callsPerSecond"];

function parseAccount(
  name: string,
  fields: Readonly<Record<string, unknown>>,
  path: string,
  mistakes: string[],
): Account {
  const { endpointHosts, credentialFile, callsPerSecond } = fields;
  const hosts = (Array.isArray(endpointHosts) ? endpointHosts : []).filter(isString);
  const say = (why: string): number => mistakes.push(`accounts.${name}.${why}`);
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name)) say(": not a name of a Secret");
  for (const unknown of Object.keys(fields).filter((field) => !accountFields.includes(field))) {
    say(`${unknown}: unknown field`);
  }
  if (hosts.length === 0 || !hosts.every(isHostPattern)) {
    say('endpointHosts: want hosts such as "api.example.com" or "*.example.com"');
  }
  if (!isString(credentialFile) || credentialFile === "") say("credentialFile: want a path");
  const isRate = typeof callsPerSecond === "number" && callsPerSecond > 0 && callsPerSecond <= 1e6;
  if (callsPerSecond !== undefined && !isRate) say("callsPerSecond: want a number above 0");
  return {
    name,
    endpointHosts: hosts,
    credentialFile: resolve(dirname(path), isString(credentialFile) ? credentialFile : ""),
    ...(isRate ? { callsPerSecond } : {}),
  };
}

async function versionOf(path: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(path);
  return `${mtimeMs} ${size} ${ino}`;
}

async function readBounded(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > fileBytesMax) throw new Error(`larger than ${fileBytesMax} bytes`);
  return readFile(path, "utf8");
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : undefined;
}
