import { existsSync, readFileSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";

import { KubeConfig } from "@kubernetes/client-node";
import type { User } from "@kubernetes/client-node";
import { parse as parseYaml } from "yaml";

import { isRawObject } from "./raw-object.ts";

/** Where the API server is and how to prove who we are, as read at one moment. */
export interface ApiAccess {
  /** https URL, with a path prefix behind some proxies. */
  readonly serverUrl: string;
  readonly tls: TlsMaterial;
  /** Authorization and impersonation headers. Secret: never log them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** PEM texts and checks of one connection. */
export interface TlsMaterial {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly servername: string | undefined;
  readonly isServerVerified: boolean;
}

/** Reads access again whenever asked: files behind it rotate. */
export interface ApiAccessSource {
  /**
   * @param isForced true after a refused credential: nothing cached may be used
   * @throws Error when a file is missing or unreadable, or the configuration cannot be served
   */
  read(isForced: boolean): Promise<ApiAccess>;
}

/**
 * Access by a kubeconfig file. The file and those it names are read again each time; an exec
 * plug-in's cached credential lives on while the file's text stays the same.
 */
export function kubeConfigFile(path: string, contextName?: string): ApiAccessSource {
  let cached: { readonly text: string; readonly config: KubeConfig } | undefined;
  return {
    read: (isForced) => {
      const text = readFileSync(path, "utf8");
      if (isForced || cached?.text !== text) {
        cached = { text, config: parseKubeConfig(text, dirname(path)) };
        if (contextName !== undefined) cached.config.setCurrentContext(contextName);
      }
      return readAccess(cached.config);
    },
  };
}

/** Access by the mounted service account of the pod this process runs in. */
export function kubeConfigInCluster(): ApiAccessSource {
  let cached: KubeConfig | undefined;
  return {
    read: (isForced) => {
      if (isForced || cached === undefined) {
        cached = new KubeConfig();
        cached.loadFromCluster();
      }
      return readAccess(cached);
    },
  };
}

/**
 * The namespace of the pod this process runs in; undefined outside a cluster.
 * @throws Error when the mounted file is there and cannot be read
 */
export function podNamespace(path = podNamespaceFile): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

function parseKubeConfig(text: string, directory: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(text);
  config.makePathsAbsolute(directory);
  config.users = withTokenFiles(config.users, parseYaml(text), directory);
  return config;
}

/** client-node drops a user's `tokenFile`, the rotating kind of token; its file provider reads it. */
function withTokenFiles(users: readonly User[], document: unknown, directory: string): User[] {
  const entries = isRawObject(document) ? document["users"] : undefined;
  const tokenFiles = new Map<unknown, string>();
  for (const entry of Array.isArray(entries) ? entries : []) {
    const user: unknown = isRawObject(entry) ? entry["user"] : undefined;
    const tokenFile = isRawObject(user) ? user["tokenFile"] : undefined;
    if (isRawObject(entry) && typeof tokenFile === "string") {
      tokenFiles.set(entry["name"], resolve(directory, tokenFile));
    }
  }
  return users.map((user) => {
    const tokenFile = tokenFiles.get(user.name);
    if (tokenFile === undefined) return user;
    // As in client-go, a token file wins over a token written out.
    const fileUser: User = {
      ...user,
      token: "",
      authProvider: { name: "tokenFile", config: { tokenFile } },
    };
    return fileUser;
  });
}

async function readAccess(config: KubeConfig): Promise<ApiAccess> {
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new Error(`kubeconfig context "${config.getCurrentContext()}" names no cluster`);
  }
  if (!cluster.server.startsWith("https://")) {
    throw new Error(`API server "${cluster.server}" is not https`);
  }
  if (cluster.proxyUrl !== undefined) {
    throw new Error(`cluster "${cluster.name}": proxy-url is not supported`);
  }
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return {
    serverUrl: cluster.server,
    tls: {
      ca: pemText(options.ca),
      cert: pemText(options.cert),
      key: pemText(options.key),
      servername: options.servername,
      isServerVerified: options.rejectUnauthorized !== false,
    },
    headers: readHeaders(options),
  };
}

function readHeaders(options: RequestOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A token file usually ends in a line feed, which no header may contain.
    if (typeof value === "string") headers[name.toLowerCase()] = value.trim();
  }
  if (typeof options.auth === "string") {
    headers["authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  }
  return headers;
}

function pemText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  if (Buffer.isBuffer(value)) return value.toString("utf8");
  throw new Error("TLS material is neither text nor a buffer");
}
