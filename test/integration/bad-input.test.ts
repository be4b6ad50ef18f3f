/** Whatever users write: an admission error or a clear condition, and nothing crashes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

let stack: Stack;

before(async () => {
  stack = await startStack();
});
after(() => stack.stop());

const refused: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp])[] = [
  ["no region", { region: undefined }, /region/],
  ["an http endpoint", { endpoint: "http://live.example.com" }, /https/],
  ["userinfo in the endpoint", { endpoint: "https://me:secret@live.example.com" }, /@|user/],
  ["a displayName of 10 kB", { displayName: "x".repeat(10_240) }, /displayName/],
  ["a space in the endpoint", { endpoint: "https://live.example.com/a b" }, /space/],
];

for (const [name, spec, says] of refused) {
  test(`the API server refuses ${name} and says why`, async () => {
    const input = JSON.stringify(dhp("refused", spec));
    const result = await stack.cluster.kubectl(["apply", "-f", "-"], { input });
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, says);
  });
}

const conditioned: readonly (readonly [
  string,
  Readonly<Record<string, unknown>>,
  string,
  RegExp,
])[] = [
  [
    "an endpoint that no class covers",
    { endpoint: "https://tts.elsewhere.example" },
    "NoClass",
    /tts\.elsewhere\.example/,
  ],
  ["a class that does not exist", { className: "no-such" }, "NoClass", /no-such/],
  [
    "an endpoint outside the named class's hosts",
    { className: "livekit", endpoint: "https://tts.elsewhere.example" },
    "NotAllowed",
    /tts\.elsewhere\.example/,
  ],
  [
    "an unknown parameter",
    { parameters: { noSuchParameter: "1" } },
    "InvalidSpec",
    /spec\.parameters.*noSuchParameter/,
  ],
  [
    "a parameter that is no number",
    { parameters: { maxParticipants: "many" } },
    "InvalidSpec",
    /spec\.parameters\.maxParticipants/,
  ],
];

conditioned.forEach(([name, spec, reason, says], index) => {
  test(`${name} shows as Ready=False, ${reason}, and is deleted at once`, async () => {
    const object = `conditioned-${index}`;
    await applyDhp(stack.cluster, dhp(object, spec));
    const ready = condition(await untilReady(stack.cluster, object, "False"), "Ready");
    assert.equal(ready.reason, reason, ready.message);
    assert.match(ready.message, says);
    await deleteDhp(stack.cluster, object);
    await untilGone(stack.cluster, object, 5_000);
  });
});

test("two equally specific classes are never guessed between: AmbiguousClass names both", async () => {
  const endpointHosts = ["twice.example.com"];
  await stack.applyClass("left", { endpointHosts });
  await stack.applyClass("right", { endpointHosts });
  await applyDhp(stack.cluster, dhp("twice", { endpoint: "https://twice.example.com" }));
  const ready = condition(await untilReady(stack.cluster, "twice", "False"), "Ready");
  assert.equal(ready.reason, "AmbiguousClass");
  assert.match(ready.message, /"left" and "right"/);
});

test("a spec mended later goes on by itself", async () => {
  await applyDhp(stack.cluster, dhp("mended", { parameters: { maxParticipants: "many" } }));
  await untilReady(stack.cluster, "mended", "False");
  await applyDhp(stack.cluster, dhp("mended", { parameters: { maxParticipants: "20" } }));
  await untilReady(stack.cluster, "mended");
});

test("a name of 253 characters has its room, found and removed like any other", async () => {
  const name = `${"n".repeat(251)}-x`;
  await applyDhp(stack.cluster, dhp(name));
  await untilReady(stack.cluster, name);
  const rooms = await listRooms(stack.livekit);
  assert.equal(rooms.filter(({ metadata }) => metadata.includes(name)).length, 1);
  await deleteDhp(stack.cluster, name);
  await untilGone(stack.cluster, name);
  const left = await listRooms(stack.livekit);
  assert.equal(left.filter(({ metadata }) => metadata.includes(name)).length, 0);
});

test("two objects whose names differ only in the namespace have a room each", async () => {
  await stack.cluster.kubectl(["create", "namespace", "other"]);
  await applyDhp(stack.cluster, dhp("same"));
  const other = { ...dhp("same"), metadata: { name: "same", namespace: "other" } };
  await applyDhp(stack.cluster, other);
  await untilReady(stack.cluster, "same");
  await eventually(async () => {
    const rooms = await listRooms(stack.livekit);
    assert.equal(
      rooms.filter(({ metadata }) => /\/(default|other)\/same"/.test(metadata)).length,
      2,
    );
  });
});

test("after all of this the controller is alive and ready", async () => {
  assert.equal((await httpGet(stack.controller.ports.adminPort, "/healthz")).status, 200);
  assert.equal((await httpGet(stack.controller.ports.adminPort, "/readyz")).status, 200);
  assert.ok(await readDhp(stack.cluster, "mended"));
});
