/**
 * One rule of the wire, shown with both clients by one piece of code. They hear the same, or the rule
 * names what each of them hears and why that may be: a difference that nobody named fails, and so
 * does a named one that has gone.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { inspect } from "node:util";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { testAdapter, TestVendor } from "../../services/adapter-host/test-vendor.ts";
import { endpoint, key, owner, testHost } from "../../services/adapter-host/test-host.ts";
import type { ProviderHandlers } from "../../services/contract/provider-handlers.ts";
import { serveProvider } from "../../services/contract/server.ts";
import type { ProviderServer, ServeProviderOptions } from "../../services/contract/server.ts";
import { silentLog } from "../../services/process/log.ts";
import type { TlsFiles } from "../conformance/core/wire-client.ts";
import { libraries, openWireEnd } from "./wire-end.ts";
import type { Heard, HeardFailure, Library, WireEnd } from "./wire-end.ts";

/** What both hear, or what each hears and why. */
export type Expected =
  | { readonly both: unknown }
  | (Readonly<Record<Library, unknown>> & { readonly because: string });

/** What a rule's run works with; all of it is closed when the run ends. */
export class WireRun {
  readonly library: Library;
  readonly #closers: (() => unknown)[] = [];

  constructor(library: Library) {
    this.library = library;
  }

  closeAtEnd(close: () => unknown): void {
    this.#closers.push(close);
  }

  async serve(
    handlers: ProviderHandlers,
    options: Partial<ServeProviderOptions> = {},
  ): Promise<ProviderServer> {
    const host = "127.0.0.1";
    const server = await serveProvider({ handlers, host, port: 0, log: silentLog, ...options });
    this.closeAtEnd(() => server.close());
    return server;
  }

  connect(port: number, tls?: TlsFiles): WireEnd {
    const end = openWireEnd(this.library, `127.0.0.1:${port}`, tls);
    this.closeAtEnd(() => end.close());
    return end;
  }

  /** The real host over a vendor on loopback, served and connected to. */
  async adapter(): Promise<{
    readonly vendor: TestVendor;
    readonly end: WireEnd;
    readonly port: number;
  }> {
    const vendor = await TestVendor.start();
    this.closeAtEnd(() => vendor.stop());
    const { host, close } = testHost(vendor, testAdapter());
    this.closeAtEnd(close);
    const { port } = await this.serve(host.handlers);
    return { vendor, port, end: this.connect(port) };
  }

  async close(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
  }
}

/** Registers one test for each client. `act` answers what was heard. */
export function wireRule(
  rule: string,
  expected: Expected,
  act: (run: WireRun) => Promise<unknown>,
): void {
  if (!("both" in expected)) {
    assert.notDeepEqual(expected["grpc-js"], expected["connect-node"], `no difference: ${rule}`);
  }
  for (const library of libraries) {
    test(`${rule} (${library})`, async () => {
      const run = new WireRun(library);
      after(() => run.close());
      try {
        const heard = await act(run);
        assert.deepEqual(heard, "both" in expected ? expected.both : expected[library]);
      } finally {
        await run.close();
      }
    });
  }
}

/** A failure with nothing but a code, and what `facts` add. */
export function failed(code: string, facts: Partial<HeardFailure> = {}): HeardFailure {
  return {
    code,
    message: undefined,
    reason: undefined,
    outcome: undefined,
    providerId: undefined,
    realm: undefined,
    fields: [],
    retryAfterMs: undefined,
    hasQuota: false,
    resetsAtMs: undefined,
    preconditions: [],
    resource: undefined,
    owner: undefined,
    ...facts,
  };
}

export function failureIn(heard: Heard<unknown>): HeardFailure {
  assert.equal(heard.kind, "failure", "it was answered");
  return heard.failure;
}

export function answerIn<T>(heard: Heard<T>): T {
  assert.equal(heard.kind, "answer", inspect(heard));
  return heard.answer;
}

/** An error as its caller tells it: code, reason, outcome. */
export function wordsOf(heard: Heard<unknown>): readonly (string | undefined)[] {
  const { code, reason, outcome } = failureIn(heard);
  return [code, reason, outcome];
}

/**
 * The same of a connection that was not made or broke. connect-node names such a thing as Node.js
 * does, INTERNAL, CANCELLED or UNAVAILABLE by who noticed first; what counts is that no adapter said it.
 */
export function wordsOfBroken(library: Library, heard: Heard<unknown>): unknown {
  const words = wordsOf(heard);
  const [code, ...adaptersWords] = words;
  if (library === "grpc-js") return words;
  assert.ok(["INTERNAL", "CANCELLED", "UNAVAILABLE"].includes(code ?? ""), code);
  return adaptersWords;
}

/** What names the instance in requests to `adapter()`. */
export const named = { instanceKey: key, owner, target: { endpoint, region: "", account: "" } };

/** An Ensure that may create, valid for a minute from now. */
export function wished(): typeof named & {
  readonly spec: { readonly parameters: { readonly size: string } };
  readonly mayCreate: true;
  readonly notAfter: ReturnType<typeof timestampFromMs>;
} {
  const notAfter = timestampFromMs(Date.now() + 60_000);
  return { ...named, spec: { parameters: { size: "1" } }, mayCreate: true, notAfter };
}

/** Looks until `isSo` holds; fails after 10 s. */
export async function until(isSo: () => boolean): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!isSo()) {
    if (performance.now() > endMs) assert.fail("it did not come about within 10 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
