import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { Server } from "node:http";
import { after, before, describe, it } from "node:test";

import { systemClock } from "../process/clock.ts";
import { addressRules } from "./allow-list.ts";
import { defaultWireOptions, Wire, WireError } from "./wire.ts";
import type { WireRequest } from "./wire.ts";

let server: Server;
let request: WireRequest;
let connections = 0;
let requests = 0;

before(async () => {
  server = createServer((_request, response) => {
    requests += 1;
    response.end("{}");
  });
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  request = {
    origin: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    path: "/",
    method: "POST",
    headers: {},
    body: "{}",
    totalMs: 5000,
    signal: new AbortController().signal,
    isDetachedOnceSent: true,
    onSending: () => undefined,
  };
});
after(() => {
  server.closeAllConnections();
  server.close();
});

describe("an exchange", () => {
  it("that is called off while it waits for a connection never sends its request", async () => {
    const wire = new Wire(
      { ...defaultWireOptions, connectionsPerOriginMax: 1 },
      addressRules([]),
      systemClock,
    );
    const caller = new AbortController();
    let sendings = 0;
    const exchange = wire.exchange({
      ...request,
      signal: caller.signal,
      onSending: () => (sendings += 1),
    });
    caller.abort();
    await assert.rejects(exchange, (error) => {
      assert.ok(error instanceof WireError);
      return error.kind === "cancelled" && !error.isSent;
    });
    // The next one goes over the same connection, after what was called off.
    assert.equal((await wire.exchange(request)).status, 200);
    assert.equal(connections, 1);
    assert.equal(requests, 1);
    assert.equal(sendings, 0);
    await wire.close();
  });

  it("may have a longer answer than usual where it says so, and no longer than it says", async () => {
    const options = { ...defaultWireOptions, bodyBytesMax: 1 };
    const wire = new Wire(options, addressRules([]), systemClock);
    const tooLong = (error: unknown): boolean =>
      error instanceof WireError && /larger than 1 bytes/.test(error.message);
    await assert.rejects(wire.exchange(request), tooLong);
    assert.equal((await wire.exchange({ ...request, answerBytesMax: 2 })).text, "{}");
    await assert.rejects(wire.exchange({ ...request, answerBytesMax: 1 }), tooLong);
    await wire.close();
  });

  it("ends after its whole time, and leaves no timer behind", async () => {
    const wire = new Wire(defaultWireOptions, addressRules([]), systemClock);
    let pending = 0;
    const clock = {
      ...systemClock,
      setTimer: (delayMs: number, fn: () => void) => {
        pending += 1;
        const timer = systemClock.setTimer(delayMs, fn);
        return {
          cancel: () => {
            pending -= 1;
            timer.cancel();
          },
        };
      },
    };
    const counted = new Wire(defaultWireOptions, addressRules([]), clock);
    await counted.exchange(request);
    assert.equal(pending, 0);
    await counted.close();
    const late = wire.exchange({ ...request, totalMs: 0 });
    await assert.rejects(late, (error) => error instanceof WireError && error.kind === "timeout");
    await wire.close();
  });
});
