/** LiveKit's room service as a person at the vendor's console would use it; not the adapter's code. */
import { request } from "node:http";
import { SignJWT } from "jose";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";

export interface Room {
  readonly sid: string;
  readonly name: string;
  readonly metadata: string;
}

const timeoutMs = 5_000;
const tokenSeconds = 60;

/** All rooms of the server. */
export async function listRooms(livekit: LiveKit): Promise<readonly Room[]> {
  const answer = await call(livekit, "ListRooms", {}, { roomList: true });
  const rooms = JSON.parse(answer.text).rooms ?? [];
  return rooms.map((room: Room) => ({
    sid: room.sid,
    name: room.name,
    metadata: room.metadata ?? "",
  }));
}

/** Removes a room behind the controller's back; the HTTP status. */
export async function deleteRoom(livekit: LiveKit, name: string): Promise<number> {
  return (await call(livekit, "DeleteRoom", { room: name }, { roomCreate: true })).status;
}

export async function updateMetadata(
  livekit: LiveKit,
  name: string,
  metadata: string,
): Promise<number> {
  const grant = { roomAdmin: true, room: name };
  return (await call(livekit, "UpdateRoomMetadata", { room: name, metadata }, grant)).status;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function call(
  livekit: LiveKit,
  method: string,
  body: object,
  grant: object,
): Promise<Answer> {
  const token = await new SignJWT({ video: grant })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuer(livekit.apiKey)
    .setExpirationTime(`${tokenSeconds}s`)
    .sign(new TextEncoder().encode(livekit.apiSecret));
  return post(`${livekit.url}/twirp/livekit.RoomService/${method}`, token, JSON.stringify(body));
}

function post(url: string, token: string, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = request(url, { method: "POST", headers, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer of ${url} in ${timeoutMs} ms`)));
    sent.on("error", reject);
    sent.end(body);
  });
}
