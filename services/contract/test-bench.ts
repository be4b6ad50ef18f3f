/** A server and clients over real HTTP/2 for the tests of this folder; closed when the file ends. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { create } from "@bufbuild/protobuf";

import {
  DescribeRequestSchema,
  EnsureRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { createLog, silentLog } from "../process/log.ts";
import type { Log } from "../process/log.ts";
import { connectProvider } from "./client.ts";
import type { ConnectedClient, ConnectProviderOptions } from "./client.ts";
import { ProviderError } from "./provider-error.ts";
import type { ProviderHandlers } from "./provider-handlers.ts";
import { serveProvider } from "./server.ts";
import type { ProviderServer, ServeProviderOptions } from "./server.ts";

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

export const ensureRequest = create(EnsureRequestSchema, { instanceKey: "fleet/ns/name" });
export const describeRequest = create(DescribeRequestSchema, { instanceKey: "fleet/ns/name" });
export const inTime = { deadlineMs: 10_000 };

/** Runs `close` when the test file ends. */
export function closeAtEnd(close: () => unknown): void {
  closers.push(close);
}

export async function serve(
  handlers: ProviderHandlers,
  options: Partial<ServeProviderOptions> = {},
): Promise<ProviderServer> {
  const server = await serveProvider({
    handlers,
    host: "127.0.0.1",
    port: 0,
    log: silentLog,
    ...options,
  });
  closeAtEnd(() => server.close());
  return server;
}

export function connect(
  port: number,
  options: Partial<ConnectProviderOptions> = {},
): ConnectedClient {
  const client = connectProvider({ address: `127.0.0.1:${port}`, log: silentLog, ...options });
  closeAtEnd(() => client.close());
  return client;
}

export async function failureOf(call: Promise<unknown>): Promise<ProviderError> {
  const error: unknown = await call.then(
    () => assert.fail("the call answered"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof ProviderError, String(error));
  return error;
}

/** A log whose lines a test can look at. */
export function collectingLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { log: createLog({ name: "dhp-test", level: "debug", destination }), lines };
}

/** Looks again and again until `condition` holds; fails after `limitMs`. */
export async function eventually(condition: () => boolean, limitMs = 10_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > endMs) assert.fail("it did not come true in time");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
