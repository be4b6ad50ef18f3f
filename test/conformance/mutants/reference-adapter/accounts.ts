/** Accounts from a file, their credentials from files that may change, and which endpoints they may use. */
import { readFileSync, statSync } from "node:fs";
import type { Target } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { Failure } from "./failure.ts";
import type { Mutations } from "./mutations.ts";

export const regions = ["west", "east"] as const;

/** One vendor account in one region, ready to be asked. */
export interface Place {
  readonly endpoint: URL;
  readonly account: string;
  readonly workspace: string;
  readonly region: string;
  readonly token: string;
  /** "WORKSPACE/REGION": what ids and absences are valid in. */
  readonly realm: string;
}

interface Account {
  readonly hosts: readonly string[];
  readonly credentialFile: string;
}

interface Credential {
  readonly workspace: string;
  readonly token: string;
}

type Fields = Readonly<Record<string, unknown>>;

const fileBytesMax = 1 << 20;
const secretsMax = 1_000;

export class Accounts {
  readonly #accounts: ReadonlyMap<string, Account>;
  readonly #mutations: Mutations;
  readonly #credentials = new Map<string, { readonly credential: Credential; mark: string }>();
  /** All tokens ever read: none may leave the process. */
  readonly #secrets = new Set<string>();

  /** @param file {"accounts": {NAME: {"endpointHosts": [...], "credentialFile": PATH}}} */
  constructor(file: string, mutations: Mutations) {
    const accounts = fieldsOf(fieldsOf(JSON.parse(readFileSync(file, "utf8")))["accounts"]);
    this.#accounts = new Map(
      Object.entries(accounts).map(([name, value]) => {
        const { endpointHosts, credentialFile } = fieldsOf(value);
        const hosts = Array.isArray(endpointHosts) ? endpointHosts.map(String) : [];
        return [name, { hosts, credentialFile: String(credentialFile) }];
      }),
    );
    this.#mutations = mutations;
  }

  /** Account, endpoint, region and credential of a target, or why it has none. */
  placeOf({ endpoint, region, account: given }: Target): Place {
    const name = given === "" ? "default" : given;
    const account = this.#accounts.get(
      this.#mutations.has("any-account") && !this.#accounts.has(name) ? "default" : name,
    );
    if (account === undefined) {
      throw new Failure("UNKNOWN_ACCOUNT", "there is no such account", { fields: ["account"] });
    }
    const url = this.#allowed(endpoint, account);
    if (!regions.some((one) => one === region) && !this.#mutations.has("any-region")) {
      throw new Failure("INVALID_FIELD", `the regions are ${regions.join(", ")}`, {
        fields: ["region"],
      });
    }
    const { workspace, token } = this.#credentialOf(name, account);
    const realm = this.#mutations.has("realm-without-region")
      ? workspace
      : `${workspace}/${region}`;
    const asked = this.#mutations.has("asks-the-first-region") ? regions[0] : region;
    return { endpoint: url, account: name, workspace, region: asked, token, realm };
  }

  /** Reads all credentials once, so that they are known as secrets from the start. */
  warmUp(): void {
    for (const [name, account] of this.#accounts) {
      try {
        this.#credentialOf(name, account);
      } catch (error) {
        // An account without credential is told to whoever asks for it.
        if (!(error instanceof Failure)) throw error;
      }
    }
  }

  /** The text without any token. */
  withoutSecrets(text: string): string {
    if (this.#mutations.has("secret-in-errors")) return text;
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, "[redacted]");
    return clean;
  }

  get secrets(): readonly string[] {
    return [...this.#secrets];
  }

  #allowed(endpoint: string, { hosts }: Account): URL {
    const url = URL.parse(endpoint);
    const isHttp = url?.protocol === "http:" && this.#mutations.has("plain-http");
    const isAddress =
      /^[\d.]+$|^\[/.test(url?.hostname ?? "") && this.#mutations.has("any-address");
    const isListed =
      hosts.includes(url?.host ?? "") || this.#mutations.has("any-host") || isAddress;
    const isBare = url?.username === "" && url.password === "";
    if (url !== null && (url.protocol === "https:" || isHttp) && isListed && isBare) return url;
    throw new Failure("ENDPOINT_NOT_ALLOWED", "the endpoint is none of the account's", {
      fields: ["endpoint"],
    });
  }

  #credentialOf(name: string, account: Account): Credential {
    const known = this.#credentials.get(name);
    if (known !== undefined && this.#mutations.has("credential-is-read-once")) {
      return known.credential;
    }
    try {
      const { size, mtimeMs, ino } = statSync(account.credentialFile);
      const mark = `${size} ${mtimeMs} ${ino}`;
      if (known?.mark === mark) return known.credential;
      if (size > fileBytesMax) throw new Error("the file is too large");
      const credential = credentialIn(readFileSync(account.credentialFile, "utf8"));
      this.#credentials.set(name, { credential, mark });
      if (this.#secrets.size < secretsMax) this.#secrets.add(credential.token);
      return credential;
    } catch (cause) {
      const borrowed = this.#credentials.get("default");
      if (borrowed !== undefined && this.#mutations.has("borrows-a-credential")) {
        return borrowed.credential;
      }
      const message = `account ${name} has no credential that can be used`;
      throw new Failure("BAD_CREDENTIAL", message, {}, cause);
    }
  }
}

function credentialIn(text: string): Credential {
  const { workspace, token } = fieldsOf(JSON.parse(text));
  if (typeof workspace === "string" && typeof token === "string") return { workspace, token };
  throw new Error("it has no workspace and token");
}

function fieldsOf(value: unknown): Fields {
  if (typeof value === "object" && value !== null) return { ...value };
  throw new Error("want an object");
}
