/**
 * LiveKit's words and ours. Pure.
 *
 * A room's name is the stamp's short key: one key, one name, one room. Everything else that we keep
 * stands in the room's metadata, which clients of the room can read: no secrets there. Answers carry
 * turn_password; it is never copied.
 */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { FoundInstance, Stamp, WantedInstance } from "../../services/adapter-host/adapter.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";

/** A room as RoomService answers, as far as we use it. */
export interface Room {
  readonly sid: string;
  readonly name: string;
  readonly metadata: string;
  readonly maxParticipants: number;
  readonly numParticipants: number;
  readonly createdAtMs: number;
}

/**
 * provider_id is "name/sid": the name is what LiveKit takes in every request, the sid tells a room
 * from one that was made anew under the same name.
 */
export function providerIdOf(room: Pick<Room, "name" | "sid">): string {
  return `${room.name}/${room.sid}`;
}

/** `undefined`: not an id that this adapter made. */
export function readProviderId(id: string): Pick<Room, "name" | "sid"> | undefined {
  const at = id.lastIndexOf("/");
  if (at <= 0 || at === id.length - 1) return undefined;
  return { name: id.slice(0, at), sid: id.slice(at + 1) };
}

/** Rooms close when they are idle, unless these say no: seconds, the largest uint32. */
const foreverSeconds = 4_294_967_295;

/** CreateRoom's body. An existing room of that name is answered as it is. */
export function createRoomBody(wanted: WantedInstance): object {
  const { maxParticipants } = wanted.parameters;
  return {
    name: wanted.stamp.keyShort,
    empty_timeout: foreverSeconds,
    departure_timeout: foreverSeconds,
    metadata: roomMetadata(wanted, undefined),
    ...(maxParticipants === undefined ? {} : { max_participants: Number(maxParticipants) }),
  };
}

const metadataVersion = 1;

/** The metadata to write. What is not asked for stays as it was found. */
export function roomMetadata(wanted: WantedInstance, found: FoundInstance | undefined): string {
  const { stamp, parameters } = wanted;
  const displayName = wanted.displayName ?? found?.displayName;
  const application = parameters["applicationMetadata"] ?? found?.parameters["applicationMetadata"];
  return JSON.stringify({
    dhp: metadataVersion,
    key: stamp.key,
    owner: { cluster: stamp.cluster, uid: stamp.uid },
    specHash: stamp.specHash,
    ...(displayName === undefined ? {} : { displayName }),
    ...(application === undefined ? {} : { application }),
  });
}

/** A room in the host's words. Metadata that is not ours: a room without a stamp. */
export function foundInstance(room: Room): FoundInstance {
  const kept = readMetadata(room);
  return {
    id: providerIdOf(room),
    ...(kept === undefined ? {} : { stamp: kept.stamp }),
    state: "READY",
    displayName: kept?.displayName ?? "",
    parameters: {
      maxParticipants: String(room.maxParticipants),
      applicationMetadata: kept?.application ?? "",
    },
    availability: "AVAILABLE",
    usage: {
      concurrency: {
        used: room.numParticipants,
        ...(room.maxParticipants === 0 ? {} : { limit: room.maxParticipants }),
      },
    },
    createdAtMs: room.createdAtMs,
  };
}

/** ListRooms' answer. VENDOR_UNREADABLE when it is not one. */
export function parseRooms(json: unknown): readonly Room[] {
  const rooms = recordOf(json)["rooms"] ?? [];
  if (!Array.isArray(rooms)) throw unreadable("rooms is no list");
  return rooms.map(parseRoom);
}

/** One room of an answer; proto3 JSON leaves out what is zero, and writes 64-bit numbers as text. */
export function parseRoom(json: unknown): Room {
  const room = recordOf(json);
  const name = room["name"];
  const sid = room["sid"];
  if (typeof name !== "string" || name === "") throw unreadable("a room without name");
  if (typeof sid !== "string" || sid === "") throw unreadable("a room without sid");
  const metadata = room["metadata"];
  const createdMs = count(room, "creation_time_ms");
  return {
    sid,
    name,
    metadata: typeof metadata === "string" ? metadata : "",
    maxParticipants: count(room, "max_participants"),
    numParticipants: count(room, "num_participants"),
    createdAtMs: createdMs === 0 ? count(room, "creation_time") * 1000 : createdMs,
  };
}

interface Kept {
  readonly stamp: Stamp;
  readonly displayName: string | undefined;
  readonly application: string | undefined;
}

/** Ours only when it is complete and its key leads to this very room. */
function readMetadata(room: Room): Kept | undefined {
  const kept = parseJson(room.metadata);
  if (kept === undefined || kept["dhp"] !== metadataVersion) return undefined;
  const owner = "owner" in kept ? recordOf(kept["owner"]) : {};
  const key = text(kept["key"]);
  const cluster = text(owner["cluster"]);
  const uid = text(owner["uid"]);
  if (key === undefined || cluster === undefined || uid === undefined) return undefined;
  const stamp = makeStamp(key, { cluster, uid }, text(kept["specHash"]) ?? "");
  if (stamp.keyShort !== room.name) return undefined;
  return { stamp, displayName: text(kept["displayName"]), application: text(kept["application"]) };
}

function parseJson(metadata: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return recordOf(JSON.parse(metadata));
  } catch (_notOurs) {
    // Any application may write there what it likes.
    return undefined;
  }
}

function count(room: Readonly<Record<string, unknown>>, name: string): number {
  const value = room[name] ?? 0;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number)) return number;
  throw unreadable(`${name} is no whole number`);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw unreadable("not an object");
  }
  return Object.fromEntries(Object.entries(value));
}

/** For a mutation the outcome stays open: the vendor did something, nobody knows what. */
function unreadable(what: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", `LiveKit's answer cannot be understood: ${what}`);
}
