import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { SignJWT } from "jose";
import { startLiveKit, type LiveKit } from "./livekit.ts";

test("a room is created, listed and deleted, and deleting it again says not found", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  assert.equal((await call(server, "CreateRoom", { name: "studio" })).status, 200);
  const listed = await call(server, "ListRooms", {});
  assert.deepEqual(namesOf(listed.body), ["studio"]);
  assert.equal((await call(server, "DeleteRoom", { room: "studio" })).status, 200);
  const again = await call(server, "DeleteRoom", { room: "studio" });
  assert.equal(again.status, 404);
  assert.equal(Reflect.get(Object(again.body), "code"), "not_found");
});

test("a token signed with another secret is refused", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  const answer = await call({ ...server, apiSecret: "x".repeat(32) }, "ListRooms", {});
  assert.equal(answer.status, 401);
});

test("a restart keeps address and keys and forgets the rooms, also after a kill", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  await call(server, "CreateRoom", { name: "studio" });
  await server.kill();
  await assert.rejects(call(server, "ListRooms", {}), { code: "ECONNREFUSED" });
  await server.restart();
  assert.deepEqual(namesOf((await call(server, "ListRooms", {})).body), []);
});

test("a paused server answers nothing until it is resumed", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  server.pause();
  let hasAnswered = false;
  const answer = call(server, "ListRooms", {}).finally(() => (hasAnswered = true));
  await assert.rejects(call(server, "ListRooms", {}, 300), /timeout after 300 ms/);
  assert.equal(hasAnswered, false);
  server.resume();
  assert.equal((await answer).status, 200);
});

test("a port that another server holds is not taken for ours", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  const port = Number(new URL(server.url).port);
  await assert.rejects(startLiveKit({ port }), /cannot start livekit-server/);
});

test("nothing listens beyond the loopback address", async (t) => {
  const server = await startLiveKit();
  t.after(() => server.stop());
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === "IPv4");
  if (outside.length === 0) {
    t.skip("the machine has no other address");
    return;
  }
  for (const { address } of outside) {
    const socket = connect(Number(new URL(server.url).port), address);
    await assert.rejects(once(socket, "connect"), { code: "ECONNREFUSED" });
  }
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function call(
  server: Pick<LiveKit, "url" | "apiKey" | "apiSecret">,
  method: string,
  message: unknown,
  timeoutMs = 10_000,
): Promise<Answer> {
  const token = await new SignJWT({ video: { roomCreate: true, roomList: true } })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuer(server.apiKey)
    .setExpirationTime("60 s")
    .sign(new TextEncoder().encode(server.apiSecret));
  const outgoing = request(`${server.url}/twirp/livekit.RoomService/${method}`, {
    method: "POST",
    agent: false,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    timeout: timeoutMs,
  });
  outgoing.on("timeout", () => outgoing.destroy(new Error(`timeout after ${timeoutMs} ms`)));
  outgoing.end(JSON.stringify(message));
  return await new Promise((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        const isJson = response.headers["content-type"] === "application/json";
        resolve({ status: response.statusCode ?? 0, body: isJson ? JSON.parse(text) : text });
      });
    });
  });
}

function namesOf(body: unknown): readonly unknown[] {
  const rooms: unknown = Reflect.get(Object(body), "rooms");
  assert.ok(Array.isArray(rooms));
  return rooms.map((room: unknown) => Reflect.get(Object(room), "name"));
}
