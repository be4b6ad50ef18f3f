import { assertNever } from "../../services/process/assert-never.ts";
import { ApiError, isApiError } from "./api-error.ts";
import type { ApiQuery, Connection } from "./connection.ts";
import type { CollectionList } from "./object-cache.ts";
import { isRawObject, objectKey, readResourceVersion } from "./raw-object.ts";
import { parseWireEvent, parseWireObject } from "./wire-event.ts";
import type { WireObject } from "./wire-event.ts";

/** The query that makes a watch start with the collection's present state (WatchList). */
export const streamingListQuery: ApiQuery = {
  watch: true,
  allowWatchBookmarks: true,
  sendInitialEvents: true,
  // Without a resourceVersion this asks for a consistent read: at least as new as the request.
  resourceVersionMatch: "NotOlderThan",
};

/**
 * Reads the initial events of a streaming list up to their end bookmark; the iterator then stands
 * at the first event after the list.
 * @throws ApiError
 */
export async function readInitialEvents(
  lines: AsyncIterator<unknown>,
  what: string,
  limits: { readonly objectsMax: number; readonly onLine: () => void },
): Promise<CollectionList> {
  const items = new Map<string, WireObject>();
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    limits.onLine();
    const event = parseWireEvent(line.value, what);
    switch (event.kind) {
      case "upsert":
        items.set(objectKey(event.object.identity), event.object);
        checkCount(items.size, what, limits.objectsMax);
        break;
      case "delete":
        items.delete(objectKey(event.object.identity));
        break;
      case "bookmark":
        if (!event.isInitialEventsEnd) break;
        return { resourceVersion: event.resourceVersion, items };
      case "error":
        throw event.error;
      default:
        assertNever(event);
    }
  }
  throw unreadable(what, "the stream ended before the end of its initial events");
}

export interface PagedListRequest {
  readonly connection: Pick<Connection, "request">;
  readonly path: string;
  readonly query: ApiQuery;
  readonly pageSize: number;
  readonly objectsMax: number;
  /** Per page. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * A consistent list in pages of one snapshot. Where the snapshot is compacted away between two
 * pages, it starts over without pages, which needs no snapshot to last.
 * @throws ApiError
 */
export async function listInPages(request: PagedListRequest): Promise<CollectionList> {
  try {
    return await listFromStart(request, request.pageSize);
  } catch (error) {
    if (!isApiError(error, "gone")) throw error;
    return listFromStart(request, undefined);
  }
}

async function listFromStart(
  request: PagedListRequest,
  limit: number | undefined,
): Promise<CollectionList> {
  const { connection, path, timeoutMs, signal, objectsMax } = request;
  const what = `LIST ${path}`;
  const items = new Map<string, WireObject>();
  let token: string | undefined;
  let received = 0;
  for (;;) {
    const query = { ...request.query, limit, continue: token };
    const page = await connection.request({ method: "GET", path, query, timeoutMs, signal });
    const { objects, resourceVersion, next } = parsePage(page, what);
    for (const object of objects) items.set(objectKey(object.identity), object);
    // Counts what came, not what is new, so that a server repeating a page ends here as well.
    received += objects.length;
    checkCount(received, what, objectsMax);
    if (next === undefined) return { resourceVersion, items };
    if (objects.length === 0) throw unreadable(what, "an empty page promises another");
    token = next;
  }
}

interface Page {
  readonly objects: readonly WireObject[];
  readonly resourceVersion: string;
  readonly next: string | undefined;
}

function parsePage(page: unknown, what: string): Page {
  if (!isRawObject(page) || !isRawObject(page["metadata"])) throw unreadable(what, "no list");
  const { apiVersion, kind, metadata } = page;
  const items = page["items"] ?? [];
  if (!Array.isArray(items)) throw unreadable(what, "items is no array");
  const resourceVersion = readResourceVersion(page);
  if (resourceVersion === undefined) throw unreadable(what, "list without resourceVersion");
  // Items of built-in lists carry neither apiVersion nor kind; watch events do.
  const itemKind = typeof kind === "string" ? kind.replace(/List$/, "") : undefined;
  const next = isRawObject(metadata) ? metadata["continue"] : undefined;
  return {
    objects: items.map((item: unknown) =>
      parseWireObject(isRawObject(item) ? { apiVersion, kind: itemKind, ...item } : item, what),
    ),
    resourceVersion,
    next: typeof next === "string" && next !== "" ? next : undefined,
  };
}

function checkCount(count: number, what: string, objectsMax: number): void {
  if (count > objectsMax) throw unreadable(what, `more than ${objectsMax} objects`);
}

function unreadable(what: string, problem: string): ApiError {
  const message = `cannot ${what}: ${problem}`;
  return new ApiError({ kind: "unreadable", status: 200, reason: "", message });
}
