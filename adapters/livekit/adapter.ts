/** LiveKit rooms as instances: RoomService over Twirp (JSON), one POST per call. */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type {
  Adapter,
  FieldChange,
  FoundInstance,
  FoundPage,
  Stamp,
  VendorCall,
  WantedInstance,
} from "../../services/adapter-host/adapter.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { classifyTwirp } from "./errors.ts";
import { accessToken } from "./token.ts";
import type { RoomGrants } from "./token.ts";
import {
  createRoomBody,
  foundInstance,
  parseRoom,
  parseRooms,
  providerIdOf,
  readProviderId,
  roomMetadata,
} from "./translate.ts";

const service = "/twirp/livekit.RoomService";

/** See README.md. */
export const livekitAdapter: Adapter = {
  info: {
    name: "livekit",
    capabilities: [
      "CREATE_IDEMPOTENT",
      "UPDATE",
      "DELETE",
      "LIST_BY_OWNER",
      "BULK_HEALTH",
      "USAGE",
      "WATCH_HEALTH",
      "VALIDATE_ONLY",
    ],
    stampPlace: "ID",
    visibilityLagMs: 0,
    areListsConsistent: true,
    regions: [],
    parameterSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      additionalProperties: false,
      properties: {
        maxParticipants: {
          type: "string",
          pattern: "^(0|[1-9][0-9]{0,8})$",
          description: "People at the same time; 0: no limit. Cannot be changed.",
        },
        applicationMetadata: {
          type: "string",
          maxLength: 4096,
          description: "Text for the room's clients, in its metadata as `application`.",
        },
      },
    },
    immutableFields: ["parameters.maxParticipants"],
    publicCredentialFields: ["apiKey"],
    mutationDeadlineMs: 10_000,
  },

  async realm(call: VendorCall): Promise<string> {
    return `livekit:${new URL(call.target.endpoint).host}/${apiKeyOf(call)}`;
  },

  async read(call: VendorCall, id: string): Promise<FoundInstance | undefined> {
    const room = readProviderId(id);
    if (room === undefined) return undefined;
    const found = await roomsNamed(call, [room.name]);
    return found.find((instance) => instance.id === id);
  },

  find(call: VendorCall, stamp: Stamp): Promise<readonly FoundInstance[]> {
    return roomsNamed(call, [stamp.keyShort]);
  },

  /** LiveKit lists everything in one answer, some 600 bytes a room. */
  async list(call: VendorCall): Promise<FoundPage> {
    return { instances: await roomsNamed(call, []) };
  },

  async create(call: VendorCall, wanted: WantedInstance): Promise<string> {
    const grants = { roomCreate: true };
    const request = { method: "CreateRoom", body: createRoomBody(wanted), isMutation: true };
    return providerIdOf(parseRoom((await post(call, grants, request)).json));
  },

  async update(
    call: VendorCall,
    found: FoundInstance,
    wanted: WantedInstance,
    _changes: readonly FieldChange[],
  ): Promise<void> {
    const room = nameOf(found);
    const body = { room, metadata: roomMetadata(wanted, found) };
    const grants = { roomAdmin: true, room };
    await post(call, grants, { method: "UpdateRoomMetadata", body, isMutation: true });
  },

  async delete(call: VendorCall, found: FoundInstance): Promise<"deleted" | "absent"> {
    const body = { room: nameOf(found) };
    try {
      const grants = { roomCreate: true };
      await post(call, grants, { method: "DeleteRoom", body, isMutation: true });
      return "deleted";
    } catch (error) {
      if (error instanceof ProviderError && error.reason === "NOT_FOUND") return "absent";
      throw error;
    }
  },

  classify: classifyTwirp,
};

async function roomsNamed(
  call: VendorCall,
  names: readonly string[],
): Promise<readonly FoundInstance[]> {
  const body = names.length === 0 ? {} : { names };
  const request = { method: "ListRooms", body, isMutation: false, answerBytesMax: listBytesMax };
  const response = await post(call, { roomList: true }, request);
  return parseRooms(response.json).map(foundInstance);
}

/** Room for a hundred thousand rooms. */
const listBytesMax = 64 << 20;

interface TwirpRequest {
  readonly method: string;
  readonly body: object;
  readonly isMutation: boolean;
  readonly answerBytesMax?: number;
}

async function post(
  call: VendorCall,
  grants: RoomGrants,
  request: TwirpRequest,
): Promise<VendorResponse> {
  const token = await accessToken(apiKeyOf(call), field(call, "apiSecret"), grants);
  return call.http.send({
    ...request,
    method: "POST",
    path: `${service}/${request.method}`,
    headers: { authorization: `Bearer ${token}` },
  });
}

/** The key's id, which LiveKit calls "API key"; no secret. */
function apiKeyOf(call: VendorCall): string {
  return field(call, "apiKey");
}

function field(call: VendorCall, name: "apiKey" | "apiSecret"): string {
  const value = call.credential[name];
  if (value !== undefined && value !== "") return value;
  const message = `credential of account "${call.target.account}" has no field ${name}`;
  throw new ProviderError("BAD_CREDENTIAL", message);
}

function nameOf(found: FoundInstance): string {
  const room = readProviderId(found.id);
  if (room === undefined) throw new Error(`not an id of this adapter: ${found.id}`);
  return room.name;
}
