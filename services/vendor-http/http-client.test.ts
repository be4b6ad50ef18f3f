import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import type { Server } from "node:net";
import { after, afterEach, beforeEach, describe, it } from "node:test";

import { ProviderError } from "../contract/provider-error.ts";
import type { MutationEffect, Reason } from "../contract/provider-error.ts";
import { systemClock } from "../process/clock.ts";
import { addressRules } from "./allow-list.ts";
import { defaultBreakerOptions } from "./breaker.ts";
import { defaultGatewayOptions, VendorGateway } from "./http-client.ts";
import type { GatewayOptions, HttpScope } from "./http-client.ts";
import { MutationLedger } from "./mutation-ledger.ts";
import type { VendorHttp, VendorRequest, VendorResponse } from "./vendor-http.ts";
import { defaultWireOptions } from "./wire.ts";

const origin = "https://vendor.example";
const get: VendorRequest = { method: "GET", path: "/things", isMutation: false };
const post: VendorRequest = { method: "POST", path: "/things", body: { a: 1 }, isMutation: true };

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let answer: Answer = () => undefined;
let seen: { readonly url: string; readonly host: string; readonly method: string }[] = [];
const server = createServer((request, response) => {
  seen.push({
    url: request.url ?? "",
    host: request.headers.host ?? "",
    method: request.method ?? "",
  });
  // The whole request is taken in first: a reset before that could hit the client while it writes.
  request.resume().on("end", () => answer(request, response));
});
const port = await listen(server);
after(() => {
  server.closeAllConnections();
  server.close();
});

async function listen(listener: Server): Promise<number> {
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  return typeof address === "object" && address !== null ? address.port : assert.fail();
}

const requests: string[] = [];
let gateway = gatewayWith({});

function gatewayWith(own: Partial<GatewayOptions>, connectTo = `http://127.0.0.1:${port}`) {
  return new VendorGateway({
    clock: systemClock,
    options: {
      ...defaultGatewayOptions,
      wire: { ...defaultWireOptions, bodyBytesMax: 1000, connectTimeoutMs: 500 },
      breaker: { ...defaultBreakerOptions, verdictCountMin: 1000 },
      ...own,
    },
    addresses: addressRules([]),
    connectTo: new Map([[origin, connectTo]]),
    metrics: {
      requestEnded: ({ kind, result }) => requests.push(`${kind} ${result}`),
      circuitChanged: () => undefined,
    },
  });
}

let ledger = new MutationLedger();
let caller = new AbortController();

function bound(own: Partial<HttpScope> = {}): VendorHttp {
  return gateway.bind({
    account: "main",
    endpoint: new URL(`${origin}/base/`),
    classify,
    signal: caller.signal,
    mutationDeadlineMs: 2000,
    ledger,
    beforeMutation: () => undefined,
    ...own,
  });
}

function classify({ status, json }: VendorResponse): ProviderError | undefined {
  const isError = typeof json === "object" && json !== null && "error" in json;
  if (status < 300 && !isError) return undefined;
  if (status === 429) return new ProviderError("THROTTLED", "slow down");
  if (status === 401) return new ProviderError("BAD_CREDENTIAL", "no");
  if (status === 404 && isError) return new ProviderError("NOT_FOUND", "no such thing");
  if (status === 422 || isError) return new ProviderError("INVALID_FIELD", "bad field");
  return new ProviderError("VENDOR_ERROR", `status ${status}`);
}

async function failure(sending: Promise<unknown>): Promise<ProviderError> {
  try {
    await sending;
  } catch (error) {
    assert.ok(error instanceof ProviderError, String(error));
    return error;
  }
  return assert.fail("it did not fail");
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

beforeEach(() => {
  seen = [];
  requests.length = 0;
  ledger = new MutationLedger();
  caller = new AbortController();
  gateway = gatewayWith({});
});
afterEach(() => gateway.close());

describe("a request", () => {
  it("goes to the endpoint's own path, with query, under the endpoint's name", async () => {
    answer = json(200, { ok: true });
    const response = await bound().send({ ...get, query: { a: "1 2", b: "&" } });
    assert.deepEqual(response.json, { ok: true });
    assert.deepEqual(seen, [
      { url: "/base/things?a=1+2&b=%26", host: "vendor.example", method: "GET" },
    ]);
    assert.deepEqual(requests, ["read OK"]);
  });

  for (const location of [`http://127.0.0.1:${port}/x`, "/x", "http://169.254.169.254/"]) {
    it(`is not redirected to ${location}`, async () => {
      for (const status of [301, 302, 303, 307, 308]) {
        answer = json(status, {}, { location });
        for (const request of [get, post]) {
          const { message } = await failure(bound({ classify: () => undefined }).send(request));
          assert.match(message, /redirect \(status 30\d\) is not followed/);
        }
      }
      assert.ok(seen.length === 10 && seen.every(({ url }) => url === "/base/things"));
    });
  }

  it("takes the vendor's hint on when to come back, and a default where there is none", async () => {
    answer = json(429, {}, { "retry-after": "7" });
    assert.equal((await failure(bound().send(get))).facts.retryAfterMs, 7000);
    answer = json(429, {});
    const { facts } = await failure(bound().send(get));
    assert.equal(facts.retryAfterMs, defaultGatewayOptions.throttledRetryMs);
  });

  it("names host and cause in its error", async () => {
    await gateway.close();
    gateway = gatewayWith({}, "http://127.0.0.1:1");
    const error = await failure(bound().send(get));
    assert.equal(error.message, "cannot reach https://vendor.example: connection refused");
  });

  it("reaches no private address behind a name", async () => {
    const error = await failure(
      bound({ endpoint: new URL("https://localhost/") }).send({ ...post, path: "/x" }),
    );
    assert.equal(error.reason, "ENDPOINT_NOT_ALLOWED");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.match(error.message, /localhost resolves to the private address (127\.0\.0\.1|::1)/);
  });

  it("is refused when the account's share stays taken; other accounts go on", async () => {
    await gateway.close();
    gateway = gatewayWith({ inFlightPerAccountMax: 2, shareWaitMsMax: 50 });
    answer = () => undefined;
    const hung = [bound().send(get), bound().send(get)].map(failure);
    await seenCount(2);
    assert.equal((await failure(bound().send(get))).reason, "BUSY");
    answer = json(200, {});
    await bound({ account: "other" }).send(get);
    caller.abort();
    await Promise.all(hung);
    caller = new AbortController();
    await bound().send(get);
  });
});

interface OutcomeRow {
  readonly why: string;
  readonly answer: Answer;
  readonly reason: Reason;
  readonly outcome: MutationEffect;
}

const html: Answer = (_request, response) =>
  response.writeHead(200, { "content-type": "text/html" }).end("<html>Bad gateway</html>");
const rows: readonly OutcomeRow[] = [
  { why: "refused", answer: json(422, {}), reason: "INVALID_FIELD", outcome: "NOT_APPLIED" },
  {
    why: "refused in a 200",
    answer: json(200, { error: 1 }),
    reason: "INVALID_FIELD",
    outcome: "NOT_APPLIED",
  },
  { why: "throttled", answer: json(429, {}), reason: "THROTTLED", outcome: "NOT_APPLIED" },
  {
    why: "bad credential",
    answer: json(401, {}),
    reason: "BAD_CREDENTIAL",
    outcome: "NOT_APPLIED",
  },
  {
    why: "not found",
    answer: json(404, { error: 1 }),
    reason: "NOT_FOUND",
    outcome: "NOT_APPLIED",
  },
  { why: "a proxy's 404", answer: json(404, {}), reason: "VENDOR_ERROR", outcome: "UNKNOWN" },
  { why: "500", answer: json(500, {}), reason: "VENDOR_ERROR", outcome: "UNKNOWN" },
  { why: "502 with HTML", answer: json(502, "x"), reason: "VENDOR_ERROR", outcome: "UNKNOWN" },
  { why: "redirected", answer: json(307, {}), reason: "VENDOR_ERROR", outcome: "UNKNOWN" },
  { why: "answered in HTML", answer: html, reason: "VENDOR_UNREADABLE", outcome: "UNKNOWN" },
  {
    why: "reset",
    answer: (request) => request.socket.resetAndDestroy(),
    reason: "VENDOR_UNREACHABLE",
    outcome: "UNKNOWN",
  },
  {
    why: "cut",
    answer: (request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => request.socket.destroy());
    },
    reason: "VENDOR_UNREADABLE",
    outcome: "UNKNOWN",
  },
  {
    why: "too large",
    answer: json(200, "x".repeat(2000)),
    reason: "VENDOR_UNREADABLE",
    outcome: "UNKNOWN",
  },
  {
    why: "never answered",
    answer: () => undefined,
    reason: "VENDOR_TIMEOUT",
    outcome: "UNKNOWN",
  },
];

describe("a mutation says what happened to the vendor when it was", () => {
  for (const row of rows) {
    it(row.why, async () => {
      answer = row.answer;
      const error = await failure(bound({ mutationDeadlineMs: 300 }).send(post));
      assert.equal(error.reason, row.reason);
      assert.equal(error.outcome, row.outcome);
      assert.equal(ledger.isSent, true);
      assert.equal(ledger.outcomeOfFailure, row.outcome);
      assert.equal(seen.length, 1);
    });
  }

  const unsent: readonly (readonly [string, string])[] = [
    ["not connected", "http://127.0.0.1:1"],
    ["met by something that is not TLS", `https://127.0.0.1:${port}`],
  ];
  for (const [why, connectTo] of unsent) {
    it(why, async () => {
      await gateway.close();
      gateway = gatewayWith({}, connectTo);
      const error = await failure(bound().send(post));
      assert.equal(error.reason, "VENDOR_UNREACHABLE");
      assert.equal(error.outcome, "NOT_APPLIED");
      assert.equal(ledger.isSent, false);
    });
  }

  it("reset before the request was sent", async () => {
    const closing = createTcpServer((socket) => socket.destroy());
    const closingPort = await listen(closing);
    await gateway.close();
    // With TLS the connection breaks in the handshake.
    gateway = gatewayWith({}, `https://127.0.0.1:${closingPort}`);
    const error = await failure(bound().send(post));
    assert.equal(error.outcome, "NOT_APPLIED");
    closing.close();
  });

  it("stopped right before sending", async () => {
    const tooLate = new ProviderError("TOO_LATE", "late", { outcome: "NOT_APPLIED" });
    const stopping = bound({
      beforeMutation: () => {
        throw tooLate;
      },
    });
    assert.equal(await failure(stopping.send(post)), tooLate);
    assert.equal(seen.length, 0);
    assert.equal(ledger.outcomeOfFailure, "NOT_APPLIED");
  });

  it("begun by a caller who had left", async () => {
    caller.abort();
    const error = await failure(bound().send(post));
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(seen.length, 0);
  });
});

describe("a mutation that was sent", () => {
  it("runs on to its answer after the caller has left", async () => {
    let reply: (() => void) | undefined;
    answer = (request, response) => {
      reply = () => json(200, { id: 1 })(request, response);
    };
    const sending = bound().send(post);
    await seenCount(1);
    caller.abort();
    assert.ok(reply !== undefined);
    reply();
    assert.deepEqual((await sending).json, { id: 1 });
  });

  it("takes the rest of its primitive with it, and the whole is PARTIAL when that is refused", async () => {
    const http = bound();
    answer = json(200, {});
    await http.send(post);
    caller.abort();
    answer = json(422, {});
    const error = await failure(http.send(post));
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(ledger.outcomeOfFailure, "PARTIAL");
  });
});

describe("a read", () => {
  it("ends with the caller's deadline", async () => {
    answer = () => undefined;
    const sending = failure(bound().send(get));
    await seenCount(1);
    caller.abort();
    assert.equal((await sending).reason, "VENDOR_TIMEOUT");
  });

  it("ends at its own time-out", async () => {
    await gateway.close();
    gateway = gatewayWith({ readTimeoutMs: 50 });
    answer = () => undefined;
    assert.equal((await failure(bound().send(get))).reason, "VENDOR_TIMEOUT");
  });
});

describe("the breaker behind the gateway", () => {
  beforeEach(async () => {
    await gateway.close();
    gateway = gatewayWith({ breaker: { ...defaultBreakerOptions, verdictCountMin: 3 } });
  });

  it("opens on the vendor's failures, for that account and for reads only", async () => {
    answer = json(500, {});
    for (let i = 0; i < 3; i += 1) {
      assert.equal((await failure(bound().send(get))).reason, "VENDOR_ERROR");
    }
    const error = await failure(bound().send(get));
    assert.equal(error.reason, "CIRCUIT_OPEN");
    assert.ok((error.facts.retryAfterMs ?? 0) > 0);
    assert.equal(seen.length, 3);
    answer = json(200, {});
    await bound().send(post);
    await bound({ account: "other" }).send(get);
  });

  for (const status of [401, 404, 422, 429]) {
    it(`does not open on ${status}`, async () => {
      answer = json(status, { error: 1 });
      for (let i = 0; i < 20; i += 1) {
        assert.notEqual((await failure(bound().send(get))).reason, "CIRCUIT_OPEN");
      }
    });
  }

  it("does not open when callers leave early", async () => {
    answer = () => undefined;
    for (let i = 0; i < 5; i += 1) {
      const leaving = new AbortController();
      const sending = failure(bound({ signal: leaving.signal }).send(get));
      await seenCount(i + 1);
      leaving.abort();
      assert.equal((await sending).reason, "VENDOR_TIMEOUT");
    }
  });
});

/** Resolves once the server has seen so many requests. */
async function seenCount(count: number): Promise<void> {
  const endMs = Date.now() + 5000;
  while (seen.length < count) {
    assert.ok(Date.now() < endMs, `saw ${seen.length} of ${count} requests`);
    await systemClock.sleep(5);
  }
}
