/** Keys: bad, missing, without scope, rotated, of another user; and that none of them is ever told. */
import assert from "node:assert/strict";
import { after, beforeEach, describe, it } from "node:test";

import { failure } from "../../services/adapter-host/test-host.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { toWireStatus } from "../../services/contract/status-from-error.ts";
import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { emulatorApiKey } from "./emulator.ts";
import { effectsThatRepeat } from "./key-repeating-effects.ts";
import { Bench, target } from "./test-bench.ts";

let bench: Bench;

after(() => bench.stop());
beforeEach(async () => {
  await bench?.stop();
  bench = await Bench.start();
});

const asked = { target: target(), spec: {} };

describe("a key", () => {
  it("that is refused is never taken for an absent agent", async () => {
    await bench.ask.ensure(asked);
    await bench.script({ do: "revoke-key", apiKey: emulatorApiKey });
    for (const call of [
      () => bench.ask.ensure(asked),
      () => bench.ask.describe({ target: target() }),
      () => bench.ask.delete({ target: target() }),
      () => bench.ask.list({ target: target() }),
    ]) {
      const error = await failure(call());
      assert.equal(error.reason, "BAD_CREDENTIAL");
      assert.equal(error.code, "UNAUTHENTICATED");
    }
    assert.equal((await bench.agents()).length, 1);
  });

  it("that is missing or fits no header is refused before anything is sent", async () => {
    for (const apiKey of ["", "with\nnewline-and-more", "schlüssel"]) {
      await bench.useKey(apiKey);
      const error = await failure(bench.ask.ensure(asked));
      assert.equal(error.reason, "BAD_CREDENTIAL");
      assert.equal(error.facts.outcome, "NOT_APPLIED");
      assert.ok(apiKey === "" || !error.message.includes(apiKey));
    }
    assert.deepEqual(await bench.requests(), []);
  });

  it("that may only read is told so by the first change", async () => {
    const apiKey = "sk_key_that_only_reads";
    const permissions = ["convai_read", "user_read"];
    await bench.script({ do: "key", apiKey, userId: "user-1", permissions });
    await bench.useKey(apiKey);
    const error = await failure(bench.ask.ensure(asked));
    assert.equal(error.reason, "MISSING_SCOPE");
    assert.equal(error.code, "PERMISSION_DENIED");
    assert.equal(error.facts.outcome, "NOT_APPLIED");
  });

  it("that is rotated for the same user stays in its realm; another user's is another realm", async () => {
    const { instance } = await bench.ask.ensure(asked);
    const recorded = { providerId: instance?.providerId ?? "", realm: instance?.realm ?? "" };
    const apiKey = "sk_rotated_key_of_the_first_user";
    await bench.script(
      { do: "key", apiKey, userId: "user-1" },
      { do: "key", apiKey: "sk_key_of_another_user", userId: "user-2" },
      { do: "revoke-key", apiKey: emulatorApiKey },
    );
    await bench.useKey(apiKey);
    assert.equal((await bench.ask.ensure({ ...asked, recorded })).change, Change.NONE);
    await bench.useKey("sk_key_of_another_user");
    const error = await failure(bench.ask.delete({ target: target(), recorded }));
    assert.equal(error.reason, "WRONG_REALM");
    assert.equal(error.facts.realm, "elevenlabs:global/user-2");
    assert.equal((await bench.agents()).length, 1);
  });

  it("is asked for its user once, not once a call", async () => {
    for (let i = 0; i < 3; i += 1) await bench.ask.ensure(asked);
    const asking = (await bench.requests()).filter(({ path }) => path === "/v1/user");
    assert.equal(asking.length, 1);
  });

  it("is good in its own region only; two hosts of one workspace are one realm", async () => {
    const apiKey = "sk_key_of_the_european_user";
    await bench.script({ do: "key", apiKey, userId: "user-eu", workspace: "eu" });
    const { instance } = await bench.ask.ensure(asked);
    const us = { target: target({ endpoint: "https://api.us.elevenlabs.io", region: "us" }) };
    const same = await bench.ask.describe(us);
    assert.equal(same.instance?.providerId, instance?.providerId);
    assert.equal(same.instance?.realm, instance?.realm);
    const endpoint = "https://api.eu.residency.elevenlabs.io";
    const eu = { target: target({ endpoint, region: "eu" }), spec: {} };
    assert.equal((await failure(bench.ask.ensure(eu))).reason, "BAD_CREDENTIAL");
    await bench.useKey(apiKey);
    const there = await bench.ask.ensure(eu);
    assert.equal(there.instance?.realm, "elevenlabs:eu/user-eu");
    assert.deepEqual((await bench.agents()).map(({ workspace }) => workspace).sort(), [
      "eu",
      "global",
    ]);
  });
});

describe("the sentinel key", () => {
  it("stands in no error, log line, metric or answer, whatever the vendor does", async () => {
    const sentinel = "sk_sentinel_6f1d_never_to_be_seen";
    await bench.script(
      { do: "set", settings: { repeatsKey: true } },
      { do: "key", apiKey: sentinel, userId: "user-1" },
    );
    await bench.useKey(sentinel);
    const said: string[] = [];
    const hear = async (call: Promise<unknown>): Promise<void> => {
      try {
        said.push(textOf(await call));
      } catch (error) {
        said.push(textOf(error));
        assert.ok(error instanceof ProviderError, String(error));
        said.push(error.message, textOf(toWireStatus(error, { isMutation: true }).message));
      }
    };
    const all = async (): Promise<void> => {
      await hear(bench.ask.ensure(asked));
      await hear(bench.ask.describe({ target: target(), spec: {} }));
      await hear(bench.ask.list({ target: target() }));
      await hear(bench.ask.delete({ target: target() }));
    };
    await all();
    for (const effect of effectsThatRepeat(sentinel)) {
      const path = "^/v1/convai/";
      await bench.script({ do: "clear-faults" }, { do: "fault", path, times: 50, effect });
      await all();
    }
    await bench.script({ do: "clear-faults" }, { do: "revoke-key", apiKey: sentinel });
    await all();
    const heard = [...said, ...bench.logLines, await bench.metricsText()].join("\n");
    assert.ok(said.length > 50);
    assert.ok(heard.includes("BAD_CREDENTIAL") && heard.includes("[redacted]"));
    for (const form of [sentinel, Buffer.from(sentinel).toString("base64")]) {
      const at = heard.indexOf(form);
      assert.equal(at, -1, `the key was told: ${heard.slice(Math.max(at - 200, 0), at + 50)}`);
    }
  });
});

/** Everything in it, causes and hidden members included. */
function textOf(value: unknown): string {
  const seen = new Set<unknown>();
  const texts: string[] = [];
  const look = (inner: unknown): void => {
    if (typeof inner !== "object" || inner === null) {
      texts.push(String(inner));
      return;
    }
    if (seen.has(inner)) return;
    seen.add(inner);
    for (const name of Object.getOwnPropertyNames(inner)) {
      texts.push(name);
      look(Reflect.get(inner, name));
    }
  };
  look(value);
  return texts.join("\n");
}
