import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, test } from "node:test";

import { connect, describeRequest, failureOf, serve } from "./test-bench.ts";

test("a deadline that passes is told in the same words each time", async () => {
  const server = await serve({ describe: () => new Promise(() => undefined) });
  const client = connect(server.port);
  const first = await failureOf(client.describe(describeRequest, { deadlineMs: 60 }));
  const second = await failureOf(client.describe(describeRequest, { deadlineMs: 130 }));
  assert.deepEqual([first.code, second.code], ["DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"]);
  assert.equal(second.message, first.message);
});

test("a connection that fails again is told in the same words, without the time of day", async () => {
  const refusing = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
  after(() => refusing.close());
  const address = refusing.address();
  assert.ok(address !== null && typeof address === "object");
  const client = connect(address.port);
  const options = { deadlineMs: 5_000 };
  const first = await failureOf(client.describe(describeRequest, options));
  const second = await failureOf(client.describe(describeRequest, options));
  assert.deepEqual([first.code, second.code], ["UNAVAILABLE", "UNAVAILABLE"]);
  assert.doesNotMatch(first.message, /\dT\d/);
  assert.equal(second.message, first.message);
});
