/** The port behind the scenes: what it knows, what it refuses, what it tells. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";

import { startVendorEmulator } from "./emulator.ts";
import type { VendorEmulator } from "./emulator.ts";
import { networkEffects, operations } from "./fault-words.ts";
import { askBehind, askVendor, BoxModel } from "./test-vendor.ts";

const model = new BoxModel();
let emulator: VendorEmulator;

before(async () => {
  emulator = await startVendorEmulator(model, {
    ownRoutes: (method, path, body) =>
      path === "/own" ? { status: 200, body: { method, body } } : undefined,
  });
});
after(() => emulator.stop());
afterEach(async () => void (await post("reset", {})));

async function post(path: string, body: unknown): Promise<unknown> {
  const { status, text } = await askBehind(emulator, `/conformance/${path}`, body);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

async function get(path: string): Promise<Readonly<Record<string, unknown>>> {
  const { status, text } = await askBehind(emulator, path);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

const fault = { operation: "create", moment: "before", effect: "reset" };

describe("the port behind the scenes", () => {
  it("tells the words that the vendor knows, and those that every one knows", async () => {
    assert.deepEqual(await get("/conformance"), {
      operations,
      effects: [...networkEffects, "throttled", "server-error"],
      switches: ["listLagMs", "credential"],
      edits: ["rename", "stranger"],
    });
  });

  for (const [path, body, why] of [
    ["faults", "{", "the body is no JSON"],
    ["faults", [], "want a JSON object"],
    ["faults", { ...fault, efect: 1 }, "efect: not known"],
    ["faults", { ...fault, operation: "creates" }, "operation: .* none of create, update"],
    ["faults", { ...fault, moment: "during" }, "moment: "],
    ["faults", { ...fault, moment: undefined }, "moment: "],
    ["faults", { ...fault, effect: "busy" }, 'effect: "busy" is none of'],
    ["faults", { ...fault, times: 0 }, "times: want a whole number from 1 to 10000"],
    ["faults", { ...fault, times: 10_001 }, "times: "],
    ["faults", { ...fault, skip: 1.5 }, "skip: "],
    ["faults", { ...fault, effect: "slow" }, "delayMs: slow needs it"],
    ["faults", { ...fault, effect: "slow", delayMs: 60_001 }, "delayMs: want"],
    ["faults", { ...fault, delayMs: 5 }, "delayMs: only slow"],
    ["faults", { ...fault, retryAfterMs: 5 }, "retryAfterMs: only throttled"],
    ["switches", { lag: 1 }, "lag: not known"],
    ["switches", { listLagMs: -1 }, "listLagMs: want"],
    ["switches", { billing: "overdue" }, "billing: this vendor has no such switch; it has listLag"],
    ["switches", { credential: "bad" }, "credential: .* none of good, wrong, scopeless"],
    ["edits", { edit: "repaint", id: "b1" }, 'edit: "repaint" is none of'],
    ["edits", { edit: "twin", id: "b1" }, "edit: this vendor has no twin; it has rename, str"],
    ["edits", { edit: "rename", id: 1 }, "id: want a text"],
    ["edits", { edit: "rename", id: "b9" }, "there is no box b9"],
    ["reset", { all: true }, "all: not known; known are no fields"],
  ] as const) {
    it(`refuses ${path} ${JSON.stringify(body)}, and says why`, async () => {
      const { status, text } = await askBehind(emulator, `/conformance/${path}`, body);
      assert.equal(status, 400);
      const { error } = JSON.parse(text);
      assert.match(error, new RegExp(`^${why}`));
    });
  }

  it("refuses what is too large, too much, or leads nowhere", async () => {
    const large = await askBehind(emulator, "/conformance/faults", " ".repeat((1 << 20) + 1));
    assert.match(large.text, /a body of more than 1048576 bytes/);
    assert.equal(large.status, 400);
    for (let count = 0; count < 1_000; count += 1) await post("faults", fault);
    const { status, text } = await askBehind(emulator, "/conformance/faults", fault);
    assert.deepEqual([status, text], [400, '{"error":"more than 1000 faults"}']);
    assert.equal((await askBehind(emulator, "/conformance/fault")).status, 404);
    assert.equal((await askBehind(emulator, "/conformance/requests?since=x")).status, 400);
  });

  it("records what was asked and what it changed, and never a credential", async () => {
    const { next } = await get("/conformance/requests");
    const headers = { "x-key": "a-secret" };
    await askVendor(emulator, "/boxes", { method: "POST", body: "tea", headers });
    await post("faults", { ...fault, operation: "read", moment: "after", effect: "html" });
    await askVendor(emulator, "/boxes/b1", { headers });
    await post("faults", { ...fault, operation: "delete", effect: "server-error" });
    await askVendor(emulator, "/boxes/b1", { method: "DELETE" });
    await askVendor(emulator, "/who", { headers });
    await askVendor(emulator, "/boxes/b1", { method: "DELETE" });
    const answer = await get(`/conformance/requests?since=${String(next)}`);
    const { requests } = answer;
    assert.ok(Array.isArray(requests));
    assert.deepEqual(
      requests.map(({ operation, change, id }) => [operation, change, id]),
      [
        ["create", "created", "b1"],
        ["read", "none", ""],
        ["delete", "none", ""],
        ["any", "none", ""],
        ["delete", "deleted", "b1"],
      ],
    );
    assert.ok(requests.every(({ atMs }) => Math.abs(Date.now() - atMs) < 60_000));
    assert.equal(answer["next"], Number(next) + 5);
    assert.deepEqual(await get(`/conformance/requests?since=${String(answer["next"])}`), {
      requests: [],
      next: answer["next"],
    });
    assert.ok(!JSON.stringify(await get("/conformance/requests")).includes("a-secret"));
    assert.deepEqual(
      model.ends.slice(-5).map(({ sent, isDisturbed }) => [sent, isDisturbed]),
      [
        [201, false],
        [200, true],
        [500, true],
        [200, false],
        [204, false],
      ],
    );
  });

  it("changes the switches that are named, and takes all back with the faults", async () => {
    await post("switches", { listLagMs: 5_000 });
    await post("switches", { credential: "wrong" });
    assert.deepEqual(
      [model.switches.listLagMs, model.switches.credential, model.switches.billing],
      [5_000, "wrong", "current"],
    );
    await post("faults", { ...fault, operation: "any" });
    const { ids } = Object(await post("edits", { edit: "stranger", id: "" }));
    assert.deepEqual(ids, ["s1"]);
    await post("reset", {});
    assert.deepEqual([model.switches.listLagMs, model.switches.credential], [0, "good"]);
    assert.equal((await askVendor(emulator, "/who")).status, 200);
    const { instances } = await get("/conformance/instances");
    assert.deepEqual(instances, [
      { id: "s1", text: '{"id":"s1","label":"of another tenant"}', createdAtMs: 1 },
    ]);
  });

  it("shows the truth while lists lag, also of what was edited", async () => {
    await post("edits", { edit: "stranger", id: "" });
    await post("switches", { listLagMs: 60_000 });
    assert.deepEqual(await post("edits", { edit: "rename", id: "s1" }), { ids: [] });
    assert.equal((await askVendor(emulator, "/boxes")).text, "[]");
    assert.match(JSON.stringify(await get("/conformance/instances")), /renamed/);
  });

  it("takes further words of one vendor's own", async () => {
    const { status, text } = await askBehind(emulator, "/own", "a script");
    assert.deepEqual([status, JSON.parse(text)], [200, { method: "POST", body: "a script" }]);
  });
});
