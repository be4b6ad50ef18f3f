/**
 * A sentinel key through everything that can happen to it: it stands in no log line at level debug,
 * no status, condition, event, metric or error, of the adapter as of the controller.
 */
import assert from "node:assert/strict";
import { createServer } from "node:https";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { effectsThatRepeat } from "../../adapters/elevenlabs/key-repeating-effects.ts";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import {
  DescribeRequestSchema,
  ListRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import { createTestAuthority } from "../../services/contract/test-certificates.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { httpGet } from "../support/http-get.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  patchDhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Neither looks like a key: what knows keys by their looks alone would let them through. */
const sentinel = "violet-harbour-6f1d-never-to-be-seen";
const rotated = "amber-lantern-77ab-neither";
const place = { endpoint: elevenLabsEndpoint, region: "global" };
/** Behind it stands a server whose certificate nobody has signed. */
const strangersEndpoint = "https://api.sg.residency.elevenlabs.io";
const patience = ["--back-off-min", "50ms", "--back-off-max", "200ms", "--reprobe", "1s"];
const debug = ["--log-level", "debug"];
/** What was looked through, so that a test can tell whether anything was said at all. */
let said = "";
let stack: Stack;

const stranger = createServer(await (await createTestAuthority("nobody")).issue(["localhost"]));

before(async () => {
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
  const address = stranger.address();
  assert.ok(typeof address === "object" && address !== null);
  const detour = `${strangersEndpoint}=https://127.0.0.1:${address.port}`;
  stack = await startStack({
    withElevenLabs: {
      apiKey: sentinel,
      adapterFlags: [
        "--read-timeout=1s",
        "--circuit-open=100ms",
        `--connect-to=${detour}`,
        ...debug,
      ],
    },
    controllerFlags: [...patience, ...debug],
  });
  await stack.elevenLabs.script({ do: "set", settings: { repeatsKey: true } });
});
after(async () => {
  await stack?.stop();
  stranger.close();
});

/** Everything that anybody can read, as it is now. */
async function everythingSaid(): Promise<string> {
  const kinds = "dhp,dhpclass,events,events.events.k8s.io,leases,configmaps,secrets";
  const { elevenLabs, controller, cluster } = stack;
  const pages = [elevenLabs.adapter.ports, controller.ports].flatMap(({ adminPort }) =>
    ["/metrics", "/healthz", "/readyz"].map(async (path) => (await httpGet(adminPort, path)).text),
  );
  const parts = await Promise.all([
    cluster.kubectl(["get", kinds, "-A", "-o", "yaml"]).then(expectDone),
    answersByHand(),
    ...pages,
  ]);
  return [elevenLabs.adapter.output(), controller.output(), ...parts].join("\n");
}

/** What somebody with grpcurl would read, details and all. */
async function answersByHand(): Promise<string> {
  const client = connectProvider({ address: stack.elevenLabs.address, log: silentLog });
  const target = { ...place, account: "default" };
  const asked = { instanceKey: "local/default/object", owner: { cluster: "c", uid: "u" }, target };
  const calls = [
    client.describe(create(DescribeRequestSchema, asked), { deadlineMs: 5_000 }),
    client.list(create(ListRequestSchema, { target }), { deadlineMs: 5_000 }),
  ];
  const answers = await Promise.allSettled(calls);
  client.close();
  return answers.map((answer) => textOf(answer)).join("\n");
}

function textOf(answer: PromiseSettledResult<unknown>): string {
  if (answer.status === "fulfilled")
    return Object.values(Object(answer.value)).map(String).join(" ");
  const { reason } = answer;
  assert.ok(reason instanceof ProviderError, String(reason));
  return JSON.stringify({ message: reason.message, facts: { ...reason.facts, cause: undefined } });
}

async function assertUnsaid(): Promise<void> {
  said = await everythingSaid();
  for (const key of [sentinel, rotated]) {
    const forms = [key, encodeURIComponent(key), Buffer.from(key).toString("base64")];
    for (const form of forms) {
      const at = said.indexOf(form);
      const context = said.slice(Math.max(at - 300, 0), at + 50);
      assert.equal(at, -1, `the key was told: ${context}`);
    }
  }
}

test("where all goes well", async () => {
  await applyDhp(stack.cluster, dhp("object", place));
  await untilReady(stack.cluster, "object");
  await patchDhp(stack.cluster, "object", { spec: { displayName: "changed" } });
  await untilReady(stack.cluster, "object");
  await applyDhp(stack.cluster, dhp("short-lived", place));
  await untilReady(stack.cluster, "short-lived");
  await deleteDhp(stack.cluster, "short-lived");
  await untilGone(stack.cluster, "short-lived");
  await assertUnsaid();
  assert.match(said, /"account":"default"|account="default"/);
});

test("where the vendor repeats it in whatever it answers", async () => {
  const path = "^/v1/convai/";
  const faults = effectsThatRepeat(sentinel).map((effect) => ({ do: "fault", path, effect }));
  await stack.elevenLabs.script(...faults);
  let heard = "";
  for (let count = 0; (await stack.elevenLabs.faults()).length > 0; count += 1) {
    assert.ok(count < 200, "not all faults are met");
    await forcePass(stack.cluster, "object");
    await assertUnsaid();
    heard += said;
  }
  assert.match(heard, /you sent xi-api-key: \[redacted\]/);
  await untilReady(stack.cluster, "object");
});

test("where the vendor refuses it, and repeats it as it does", async () => {
  await stack.elevenLabs.script({ do: "revoke-key", apiKey: sentinel });
  await eventually(async () => {
    await forcePass(stack.cluster, "object");
    const { message } = condition(await readDhp(stack.cluster, "object"), "Ready");
    assert.match(message, /invalid_api_key.*\[redacted\]/);
  });
  await assertUnsaid();
});

test("where a stranger stands in the vendor's place, whose certificate is not trusted", async () => {
  await stack.applyElevenLabsClass("far-away");
  const spec = { endpoint: strangersEndpoint, region: "sg", className: "far-away" };
  await applyDhp(stack.cluster, dhp("stranger", spec));
  const object = await untilReady(stack.cluster, "stranger", "False");
  assert.match(condition(object, "Ready").message, /TLS failed/);
  await assertUnsaid();
});

test("where its file is rotated, cut off, and put in the wrong place", async () => {
  await stack.elevenLabs.script({ do: "key", apiKey: rotated, userId: "user-1" });
  await stack.elevenLabs.useKey("default", rotated);
  await untilReady(stack.cluster, "object");
  for (const text of [`{"apiKey": "${rotated}`, rotated, `apiKey: [${rotated}]`]) {
    await stack.elevenLabs.writeCredential("default", text);
    await forcePass(stack.cluster, "object");
    await eventually(async () => {
      const { message } = condition(await readDhp(stack.cluster, "object"), "Ready");
      assert.match(message, /credential of account "default"/);
    });
    await assertUnsaid();
  }
});

test("where both processes are told to stop, and one is killed", async () => {
  const { elevenLabs, controller } = stack;
  await elevenLabs.useKey("default", rotated);
  await untilReady(stack.cluster, "object");
  const output = (): string => elevenLabs.adapter.output() + controller.output();
  await elevenLabs.adapter.kill();
  await forcePass(stack.cluster, "object");
  await untilReady(stack.cluster, "object", "Unknown");
  await controller.stop();
  assert.ok(!output().includes(sentinel) && !output().includes(rotated));
});
