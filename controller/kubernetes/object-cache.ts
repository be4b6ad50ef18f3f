import { deepFreeze } from "./deep-freeze.ts";
import { objectKey } from "./raw-object.ts";
import type { RawObject } from "./raw-object.ts";
import { isOlder } from "./resource-version.ts";
import { StringPool } from "./string-pool.ts";
import type { WireObject } from "./wire-event.ts";

/** A change of the cache, as handlers see it. Objects are frozen. */
export type WatchEvent<T> =
  | {
      readonly kind: "added";
      readonly key: string;
      readonly object: T;
      /** True while the cache fills for the first time: the object need not be new. */
      readonly isInitial: boolean;
    }
  | { readonly kind: "modified"; readonly key: string; readonly object: T; readonly before: T }
  | { readonly kind: "deleted"; readonly key: string; readonly before: T };

/** A complete list of the collection as it stood at one resourceVersion. */
export interface CollectionList {
  readonly resourceVersion: string;
  readonly items: ReadonlyMap<string, WireObject>;
}

export interface ObjectCacheOptions<T> {
  /** The checked door from JSON to T; whatever it throws counts as an unreadable object. */
  readonly parse: (raw: RawObject) => T;
  /** An object this program cannot read: its last readable version stays in the cache. */
  readonly onUnreadable: (key: string, error: unknown) => void;
}

interface Entry<T> {
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined while no version of it could be read. */
  readonly object: T | undefined;
}

/** A started list may not be merged before this is passed back: see `ObjectCache.beginList`. */
export interface ListTicket {
  readonly progressAtStart: string | undefined;
  readonly deletions: Map<string, string>;
}

/**
 * The objects of one collection, ordered by resourceVersion: older never replaces newer, and the
 * same again is no event. An incarnation is known by its uid, so an object deleted and made again
 * during a gap is a delete and an add.
 */
export class ObjectCache<T> {
  readonly #options: ObjectCacheOptions<T>;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #strings = new StringPool();
  readonly #openLists = new Set<ListTicket>();
  #resourceVersion: string | undefined;
  #isFilled = false;

  constructor(options: ObjectCacheOptions<T>) {
    this.#options = options;
  }

  /** Everything up to this version is in the cache; undefined before the first list. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.object;
  }

  /** The cached resourceVersion of one object. */
  versionOf(key: string): string | undefined {
    return this.#entries.get(key)?.resourceVersion;
  }

  keys(): string[] {
    return [...this.#entries.keys()];
  }

  list(): T[] {
    const objects: T[] = [];
    for (const { object } of this.#entries.values()) {
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  /** An ADDED or MODIFIED event. */
  upsert(object: WireObject): WatchEvent<T>[] {
    if (this.#isPast(object.identity.resourceVersion)) return [];
    const events = this.#put(object);
    this.advance(object.identity.resourceVersion);
    return events;
  }

  /** A DELETED event; its object carries the resourceVersion of the deletion. */
  remove({ identity }: WireObject): WatchEvent<T>[] {
    const key = objectKey(identity);
    const entry = this.#entries.get(key);
    this.advance(identity.resourceVersion);
    if (entry === undefined || isOlder(identity.resourceVersion, entry.resourceVersion)) return [];
    return this.#drop(key, identity.resourceVersion);
  }

  /** A bookmark: the collection did not change up to this version. Never goes back. */
  advance(resourceVersion: string): void {
    if (!this.#isPast(resourceVersion)) this.#resourceVersion = resourceVersion;
  }

  /** Call before asking for a list, so that deletions seen meanwhile are not undone by it. */
  beginList(): ListTicket {
    const ticket: ListTicket = { progressAtStart: this.#resourceVersion, deletions: new Map() };
    this.#openLists.add(ticket);
    return ticket;
  }

  /** The list failed. */
  abandonList(ticket: ListTicket): void {
    this.#openLists.delete(ticket);
  }

  /** True where the list is older than what the cache knew before it was asked for. */
  isStale(list: CollectionList, ticket: ListTicket): boolean {
    const known = ticket.progressAtStart;
    return known !== undefined && isOlder(list.resourceVersion, known);
  }

  /** Takes over a complete list; what changed is answered. An identical list answers nothing. */
  merge(list: CollectionList, ticket: ListTicket): WatchEvent<T>[] {
    this.#openLists.delete(ticket);
    const events: WatchEvent<T>[] = [];
    for (const [key, entry] of this.#entries) {
      if (list.items.has(key) || isOlder(list.resourceVersion, entry.resourceVersion)) continue;
      events.push(...this.#drop(key, list.resourceVersion));
    }
    for (const [key, object] of list.items) {
      const deletedAt = ticket.deletions.get(key);
      const { resourceVersion } = object.identity;
      if (deletedAt !== undefined && isOlder(resourceVersion, deletedAt)) continue;
      events.push(...this.#put(object));
    }
    this.advance(list.resourceVersion);
    this.#isFilled = true;
    return events;
  }

  /**
   * Takes over a list that is older than the cache: the API server's store was set back, as by
   * restoring a backup. Versions start again from the list's.
   */
  mergeRollback(list: CollectionList, ticket: ListTicket): WatchEvent<T>[] {
    this.#openLists.delete(ticket);
    const events: WatchEvent<T>[] = [];
    for (const key of this.keys()) {
      if (!list.items.has(key)) events.push(...this.#drop(key, list.resourceVersion));
    }
    for (const object of list.items.values()) events.push(...this.#put(object, true));
    this.#resourceVersion = list.resourceVersion;
    this.#isFilled = true;
    return events;
  }

  #isPast(resourceVersion: string): boolean {
    return this.#resourceVersion !== undefined && isOlder(resourceVersion, this.#resourceVersion);
  }

  #put({ identity, raw }: WireObject, isRollback = false): WatchEvent<T>[] {
    const key = objectKey(identity);
    const { uid, resourceVersion } = identity;
    const entry = this.#entries.get(key);
    const isKnown = entry?.uid === uid && entry.resourceVersion === resourceVersion;
    if (isKnown) return [];
    if (!isRollback && entry !== undefined && isOlder(resourceVersion, entry.resourceVersion)) {
      return [];
    }
    const events: WatchEvent<T>[] = [];
    if (entry !== undefined && entry.uid !== uid) events.push(...this.#drop(key, resourceVersion));
    const before = this.#entries.get(key)?.object;
    const object = this.#parse(key, raw) ?? before;
    this.#entries.set(key, { uid, resourceVersion, object });
    if (object === undefined || object === before) return events;
    if (before === undefined) {
      events.push({ kind: "added", key, object, isInitial: !this.#isFilled });
    } else {
      events.push({ kind: "modified", key, object, before });
    }
    return events;
  }

  #drop(key: string, deletedAt: string): WatchEvent<T>[] {
    const before = this.#entries.get(key)?.object;
    this.#entries.delete(key);
    for (const ticket of this.#openLists) ticket.deletions.set(key, deletedAt);
    return before === undefined ? [] : [{ kind: "deleted", key, before }];
  }

  #parse(key: string, raw: RawObject): T | undefined {
    try {
      this.#strings.shareWithin(raw);
      return deepFreeze(this.#options.parse(raw));
    } catch (error) {
      this.#options.onUnreadable(key, error);
      return undefined;
    }
  }
}
