import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const entriesMax = 2_000_000;

/** One request to the API server, as its audit log (level Metadata) tells it. */
export interface AuditEntry {
  readonly id: string;
  /** The last stage written: RequestReceived while it runs, ResponseStarted for an open watch. */
  readonly stage: string;
  readonly receivedAt: Date;
  /** get, list, watch, create, update, patch, delete, deletecollection; of others the HTTP method. */
  readonly verb: string;
  /** The user name, system:serviceaccount:<namespace>:<name> for a ServiceAccount. */
  readonly user: string;
  readonly userAgent: string;
  readonly uri: string;
  /** Empty for a request outside the resources, /readyz for example. */
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** HTTP status; absent while no response has begun. */
  readonly code?: number;
}

/**
 * Reads the log and returns one entry a request, in the order in which they were received. A
 * request whose answer somebody has is in it, since the server writes before it acts.
 */
export async function readAuditLog(file: string): Promise<readonly AuditEntry[]> {
  const requests = new Map<string, AuditEntry>();
  const stream = createReadStream(file, "utf8");
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      const entry = parseEntry(line);
      if (entry === undefined) continue;
      requests.set(entry.id, entry);
      if (requests.size > entriesMax) {
        throw new Error(`audit log "${file}" has more than ${entriesMax} requests`);
      }
    }
  } finally {
    stream.destroy();
  }
  return [...requests.values()];
}

/** Undefined for the last line, which may be half written. */
function parseEntry(line: string): AuditEntry | undefined {
  const event = parseObject(line);
  if (event === undefined) return undefined;
  const target = asRecord(event["objectRef"]);
  const code = asRecord(event["responseStatus"])["code"];
  return {
    id: asText(event["auditID"]),
    stage: asText(event["stage"]),
    receivedAt: new Date(asText(event["requestReceivedTimestamp"])),
    verb: asText(event["verb"]),
    user: asText(asRecord(event["user"])["username"]),
    userAgent: asText(event["userAgent"]),
    uri: asText(event["requestURI"]),
    group: asText(target["apiGroup"]),
    version: asText(target["apiVersion"]),
    resource: asText(target["resource"]),
    subresource: asText(target["subresource"]),
    namespace: asText(target["namespace"]),
    name: asText(target["name"]),
    ...(typeof code === "number" ? { code } : {}),
  };
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asRecord(JSON.parse(line));
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined;
    throw cause;
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
