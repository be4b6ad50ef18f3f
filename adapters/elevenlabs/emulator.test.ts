/** The emulator itself: HTTPS, routes, refusals, its record, its script port, its process. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { startChild } from "../../deploy/dev-cluster/child-process.ts";
import { emulatorApiKey, startEmulator } from "./emulator.ts";
import type { Emulator } from "./emulator.ts";
import { exchange } from "./test-bench.ts";

let emulator: Emulator;

before(async () => {
  emulator = await startEmulator();
});
after(() => emulator.stop());

interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  readonly key?: string | undefined;
  readonly ca?: string | undefined;
}

/** One request to the vendor's API. */
function ask(
  path: string,
  own: Asked = {},
): Promise<{ readonly status: number; readonly json: unknown }> {
  const { method = "GET", body, key = emulatorApiKey } = own;
  const ca = "ca" in own ? own.ca : readFileSync(emulator.caFile, "utf8");
  const headers = { host: "api.elevenlabs.io", ...(key === "" ? {} : { "xi-api-key": key }) };
  return new Promise((resolve, reject) => {
    const options = { method, headers, ca, agent: false, timeout: 10_000 };
    const sent = httpsRequest(emulator.url + path, options, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          json: text === "" ? undefined : JSON.parse(text),
        }),
      );
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function script(steps: unknown): ReturnType<typeof exchange> {
  return exchange("POST", `${emulator.faultUrl}/script`, JSON.stringify(steps));
}

async function requestRecords(): Promise<readonly Record<string, unknown>[]> {
  const { text } = await exchange("GET", `${emulator.faultUrl}/requests`);
  return JSON.parse(text).requests;
}

const agents = "/v1/convai/agents";

describe("the emulator", () => {
  it("is trusted by its own authority alone", async () => {
    assert.equal((await ask("/v1/user")).status, 200);
    await assert.rejects(ask("/v1/user", { ca: undefined }), /certificate/);
  });

  for (const [path, own, status, words] of [
    ["/v1/user", { key: "" }, 401, "needs_authorization"],
    ["/v1/user", { key: "sk_unknown" }, 401, "invalid_api_key"],
    ["/v1/nothing", {}, 404, "Not Found"],
    [`${agents}/create`, {}, 405, "Method Not Allowed"],
    [`${agents}/agent_0`, {}, 404, "agent_not_found"],
    [`${agents}?page_size=101`, {}, 422, "page_size"],
    [`${agents}?cursor=nonsense`, {}, 400, "invalid_cursor"],
    [`${agents}/create`, { method: "POST", body: {} }, 422, "conversation_config"],
    [`${agents}/create`, { method: "POST", body: [] }, 422, "json_invalid"],
    [
      `${agents}/create`,
      { method: "POST", body: { conversation_config: {}, tags: 1 } },
      422,
      "tags",
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(own)} at ${path}: ${status} ${words}`, async () => {
      const answer = await ask(path, own);
      assert.equal(answer.status, status);
      assert.match(JSON.stringify(answer.json), new RegExp(words));
    });
  }

  it("records who called what and what came of it, and no key", async () => {
    const made = await ask(`${agents}/create`, {
      method: "POST",
      body: { conversation_config: {}, name: "recorded" },
    });
    const id = String(Reflect.get(Object(made.json), "agent_id"));
    assert.match(id, /^agent_[0-9a-z]{28}$/);
    assert.equal((await ask(`${agents}/${id}`, { method: "DELETE" })).status, 204);
    const records = (await requestRecords()).slice(-2);
    assert.deepEqual(
      records.map(({ method, userId, status, change, agentId }) => [
        method,
        userId,
        status,
        change,
        agentId,
      ]),
      [
        ["POST", "user-1", 200, "created", id],
        ["DELETE", "user-1", 204, "deleted", id],
      ],
    );
    assert.ok(!JSON.stringify(await requestRecords()).includes(emulatorApiKey));
  });

  it("searches by a part of the name, newest first unless asked otherwise", async () => {
    await script([
      { do: "create-agent", fields: { name: "tea one" } },
      { do: "advance", ms: 2_000 },
      { do: "create-agent", fields: { name: "tea two" } },
      { do: "create-agent", fields: { name: "coffee" } },
    ]);
    const namesOf = async (query: string): Promise<unknown[]> => {
      const { json } = await ask(`${agents}?${query}`);
      const listed: unknown = Reflect.get(Object(json), "agents");
      assert.ok(Array.isArray(listed));
      return listed.map((agent: unknown) => Reflect.get(Object(agent), "name"));
    };
    assert.deepEqual(await namesOf("search=TEA"), ["tea two", "tea one"]);
    assert.deepEqual(await namesOf("search=tea&sort_direction=asc"), ["tea one", "tea two"]);
  });

  it("delays, passes by and befalls as often as it is told", async () => {
    const effect = { kind: "error", name: "system_busy", headers: { "Retry-After": "3" } };
    await script({ do: "fault", path: "^/v1/user$", skip: 1, times: 2, delayMs: 100, effect });
    const statuses: number[] = [];
    const startMs = performance.now();
    for (let i = 0; i < 4; i += 1) statuses.push((await ask("/v1/user")).status);
    assert.deepEqual(statuses, [200, 429, 429, 200]);
    assert.ok(performance.now() - startMs >= 200);
  });

  it("befalls one user's requests only, where a fault names the user", async () => {
    const apiKey = "sk_key_of_a_colleague";
    await script([
      { do: "key", apiKey, userId: "user-2" },
      { do: "fault", userId: "user-2", effect: { kind: "error", name: "internal_error" } },
    ]);
    assert.equal((await ask("/v1/user")).status, 200);
    assert.equal((await ask("/v1/user", { key: apiKey })).status, 500);
    assert.equal((await ask("/v1/user", { key: apiKey })).status, 200);
  });

  for (const [effect, status, words] of [
    ["bad-value", 422, "conversation_config"],
    ["wrong-path", 404, "Not Found"],
    ["busy", 429, "system_busy"],
    ["throttled", 429, "too_many_concurrent_requests"],
    ["quota-exhausted", 401, "quota_exceeded"],
    ["billing-stopped", 402, "payment_required"],
    ["bad-credential", 401, "invalid_api_key"],
    ["missing-scope", 401, "missing_permissions"],
    ["server-error", 500, "internal_error"],
  ] as const) {
    it(`says ${effect} as ${status} with ${words}`, async () => {
      const fault = JSON.stringify({ operation: "list", moment: "before", effect });
      await exchange("POST", `${emulator.faultUrl}/conformance/faults`, fault);
      assert.equal((await ask("/v1/user")).status, 200);
      const answer = await ask(agents);
      assert.equal(answer.status, status);
      assert.match(JSON.stringify(answer.json), new RegExp(words));
    });
  }

  it("keeps a script's fault waiting while one in common words befalls", async () => {
    await script({ do: "fault", effect: { kind: "error", name: "internal_error" } });
    const fault = { operation: "any", moment: "before", effect: "throttled", retryAfterMs: 2_500 };
    await exchange("POST", `${emulator.faultUrl}/conformance/faults`, JSON.stringify(fault));
    const statuses: number[] = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask("/v1/user")).status);
    assert.deepEqual(statuses, [429, 500, 200]);
  });

  it("lets an account fall behind, and takes it back without a trace", async () => {
    const subscription = async (): Promise<unknown> => (await ask("/v1/user/subscription")).json;
    const turn = (billing: string): ReturnType<typeof exchange> =>
      exchange("POST", `${emulator.faultUrl}/conformance/switches`, JSON.stringify({ billing }));
    const before = await subscription();
    await turn("overdue");
    assert.match(JSON.stringify(await subscription()), /"status":"past_due".*"amount_due_cents"/);
    await turn("exhausted");
    assert.match(JSON.stringify(await subscription()), /"character_count":500000/);
    await turn("current");
    assert.deepEqual(await subscription(), before);
  });

  it("refuses a script that it does not understand, and says why", async () => {
    for (const [steps, why] of [
      [{ do: "nothing" }, "there is no step"],
      [{ do: "set", settings: { nope: 1 } }, 'there is no \\\\"nope\\\\"'],
      [{ do: "set", settings: { cursor: "page" } }, "settings.cursor"],
      [{ do: "fault", effect: { kind: "error", name: "nope" } }, "no such error"],
      [{ do: "fault", effect: { kind: "answer", status: 42 } }, "status"],
      [{ do: "fault", times: -1 }, "times"],
      [{ do: "fault", path: "(" }, "regular expression"],
      [{ do: "edit-agent", agentId: "agent_0", fields: {} }, "there is no agent"],
    ] as const) {
      const { status, text } = await script(steps);
      assert.equal(status, 400);
      assert.match(text, new RegExp(why));
    }
  });

  it("runs as a process, tells its ports, and leaves nothing behind on SIGTERM", async () => {
    const folder = await mkdtemp(join(tmpdir(), "dhp-emulator-test-"));
    const portFile = join(folder, "ports.json");
    const main = new URL("emulator/main.ts", import.meta.url).pathname;
    const child = await startChild({
      name: "emulator",
      program: process.execPath,
      args: [main, "--port-file", portFile],
      environment: {},
      readiness: { kind: "probe", probe: async () => existsSync(portFile) },
    });
    const { url, caFile, faultUrl } = JSON.parse(await readFile(portFile, "utf8"));
    assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
    assert.ok(existsSync(caFile));
    assert.equal((await exchange("GET", `${faultUrl}/world`)).status, 200);
    assert.equal((await child.stop()).code, 0);
    assert.ok(!existsSync(caFile));
    await rm(folder, { recursive: true });
  });
});
