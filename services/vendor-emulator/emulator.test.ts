/** An emulator's API over real HTTPS: what befalls requests, and when they take effect. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, it } from "node:test";

import { startVendorEmulator } from "./emulator.ts";
import type { VendorEmulator } from "./emulator.ts";
import type { Fault } from "./fault-words.ts";
import { askBehind, askVendor, beginAsking, BoxModel, vendorHost } from "./test-vendor.ts";
import type { Answered } from "./test-vendor.ts";

let model: BoxModel;
let emulator: VendorEmulator;

beforeEach(async () => {
  model = new BoxModel();
  emulator = await startVendorEmulator(model);
});
afterEach(() => emulator.stop());

async function arm(fault: Partial<Fault> & Pick<Fault, "effect">): Promise<void> {
  const whole = { operation: "any", moment: "before", ...fault };
  const { status, text } = await askBehind(emulator, "/conformance/faults", whole);
  assert.equal(status, 200, text);
}

function create(): Promise<Answered> {
  return askVendor(emulator, "/boxes", { method: "POST", body: "tea" });
}

function isThere(): boolean {
  return model.instances().length === 1;
}

describe("an emulated vendor", () => {
  it("is trusted by its own authority alone, under its own host names", async () => {
    assert.equal((await askVendor(emulator, "/who")).text, `{"host":"${vendorHost}"}`);
    const answer = askVendor(emulator, "/who", { ca: "" });
    await assert.rejects(answer, /certificate/);
  });

  it("leaves nothing behind when it stops, and drops those who still wait", async () => {
    const timers = (): readonly string[] =>
      process.getActiveResourcesInfo().filter((name) => name === "Timeout");
    const timersBefore = timers();
    await arm({ effect: "hang" });
    await arm({ effect: "slow", delayMs: 60_000, operation: "list" });
    const waiting = ["/who", "/boxes"].map((path) => askVendor(emulator, path));
    const dropped = waiting.map((answer) => assert.rejects(answer, { code: "ECONNRESET" }));
    await model.until(() => model.askedCount === waiting.length);
    const startMs = performance.now();
    await emulator.stop();
    await Promise.all(dropped);
    assert.deepEqual(timers(), timersBefore, "a delay goes on");
    assert.ok(performance.now() - startMs < 5_000);
    assert.ok(!existsSync(emulator.caFile));
  });

  it("tells a mistake of its model as such", async () => {
    const { status, text } = await askVendor(emulator, "/mistake");
    assert.deepEqual([status, text], [500, "the emulator failed: a mistake of the model"]);
  });

  it("takes bodies up to 1 MiB", async () => {
    const body = "x".repeat(1 << 20);
    assert.equal((await askVendor(emulator, "/boxes", { method: "POST", body })).status, 201);
    const larger = await askVendor(emulator, "/boxes", { method: "POST", body: `${body}x` });
    assert.match(larger.text, /a body of more than 1048576 bytes/);
  });

  for (const [effect, moment, error] of [
    ["reset", "before", { code: "ECONNRESET" }],
    ["reset", "after", { code: "ECONNRESET" }],
    ["cut", "after", { message: "aborted" }],
  ] as const) {
    it(`ends with ${effect} ${moment} it acted`, async () => {
      await arm({ effect, moment });
      await assert.rejects(create(), error);
      assert.equal(isThere(), moment === "after");
      assert.equal(model.ends[0]?.sent, effect);
    });
  }

  it("cuts an empty answer in its head", async () => {
    await create();
    await arm({ effect: "cut" });
    const answer = askVendor(emulator, "/boxes/b1", { method: "DELETE" });
    await assert.rejects(answer, { code: /ECONNRESET|HPE_/ });
    assert.ok(!isThere());
  });

  it("resets below TLS: the other side sees no orderly end", async () => {
    await arm({ effect: "reset" });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const answer = beginAsking(emulator, "/who");
    await assert.rejects(answer, (error: NodeJS.ErrnoException) => {
      // "socket hang up" is what an orderly end without an answer is called.
      resolve(error.message === "read ECONNRESET");
      return true;
    });
    assert.ok(await promise);
  });

  for (const moment of ["before", "after"] as const) {
    it(`is slow ${moment} it acts`, async () => {
      await arm({ effect: "slow", moment, delayMs: 300 });
      const startMs = Date.now();
      assert.equal((await create()).status, 201);
      const endMs = Date.now();
      const { text } = await askBehind(emulator, "/conformance/requests");
      const [{ atMs }] = JSON.parse(text).requests;
      const heldBackMs = moment === "before" ? atMs - startMs : endMs - atMs;
      assert.ok(heldBackMs >= 290, `${heldBackMs} ms`);
    });
  }

  it("never answers, whether it acted or not", async () => {
    for (const [at, moment] of (["before", "after"] as const).entries()) {
      await arm({ effect: "hang", moment });
      const patience = new AbortController();
      const asked = { method: "POST", body: "tea", signal: patience.signal };
      const gaveUp = assert.rejects(askVendor(emulator, "/boxes", asked), { name: "AbortError" });
      await model.until(() => model.ends.length > at);
      assert.equal(isThere(), moment === "after");
      patience.abort();
      await gaveUp;
      assert.equal(model.ends[at]?.sent, "hang");
    }
  });

  it("answers with a page, or leads elsewhere", async () => {
    await arm({ effect: "html" });
    const page = await create();
    assert.deepEqual(
      [page.status, page.headers["content-type"], page.text.slice(0, 6)],
      [200, "text/html; charset=utf-8", "<html>"],
    );
    await arm({ effect: "redirect" });
    const { status, headers } = await create();
    assert.equal(status, 302);
    assert.notEqual(new URL(headers.location ?? "").host, vendorHost);
    assert.ok(!isThere());
  });

  it("repeats the headers that were sent", async () => {
    await arm({ effect: "echo" });
    const headers = { authorization: "Bearer of-the-test" };
    const { status, text } = await askVendor(emulator, "/boxes", { headers });
    assert.equal(status, 500);
    for (const said of [JSON.parse(text).message, JSON.parse(text).error.message]) {
      assert.match(said, /authorization: Bearer of-the-test/);
    }
  });

  it("answers as it did the first time, though the world has changed", async () => {
    await arm({ effect: "again", operation: "list", times: 2 });
    const texts: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      texts.push((await askVendor(emulator, "/boxes")).text);
      await create();
    }
    const [first, second, third] = texts;
    assert.equal(second, first);
    assert.notEqual(third, first);
  });

  it("answers with 64 MiB, and holds little of it for who does not read", async () => {
    await arm({ effect: "oversized", times: 9 });
    const held = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    const before = held();
    const unread = await Promise.all(
      Array.from({ length: 8 }, () => beginAsking(emulator, "/boxes")),
    );
    let bytes = 0;
    for await (const chunk of await beginAsking(emulator, "/boxes")) {
      bytes += Buffer.from(chunk).length;
    }
    assert.equal(bytes, 64 << 20);
    assert.ok(held() - before < 256 << 20, `${held() - before} bytes held`);
    for (const response of unread) response.destroy();
  });

  it("says things in its own words, before or after it acted", async () => {
    await arm({ effect: "throttled", retryAfterMs: 3_000 });
    const throttled = await create();
    assert.deepEqual([throttled.status, throttled.headers["retry-after"]], [400, "3"]);
    assert.ok(!isThere());
    await arm({ effect: "throttled" });
    assert.equal((await create()).headers["retry-after"], undefined);
    await arm({ effect: "server-error", moment: "after" });
    assert.equal((await create()).status, 500);
    assert.ok(isThere());
  });

  it("befalls what a fault names, after as many as it skips, as often as it says", async () => {
    await arm({ effect: "server-error", operation: "list", skip: 1, times: 2 });
    const statuses: number[] = [];
    for (const path of ["/boxes", "/who", "/boxes/b1", "/boxes", "/boxes", "/boxes"]) {
      statuses.push((await askVendor(emulator, path)).status);
    }
    assert.deepEqual(statuses, [200, 200, 200, 500, 500, 200]);
    await arm({ effect: "server-error" });
    assert.equal((await askVendor(emulator, "/who")).status, 500);
  });
});
