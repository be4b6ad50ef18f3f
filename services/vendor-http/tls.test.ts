/** HTTPS to a vendor: certificates are checked, always. */
import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { Server } from "node:https";
import { after, before, describe, it } from "node:test";

import { createTestAuthority } from "../contract/test-certificates.ts";
import type { TestAuthority } from "../contract/test-certificates.ts";
import { systemClock } from "../process/clock.ts";
import { addressRules } from "./allow-list.ts";
import { defaultWireOptions, Wire, WireError } from "./wire.ts";
import type { WireAnswer } from "./wire.ts";

let authority: TestAuthority;
let server: Server;
let origin: string;

before(async () => {
  authority = await createTestAuthority("vendors");
  const { cert, key } = await authority.issue(["vendor.example"]);
  server = createServer({ cert, key }, (_request, response) => response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  origin = `https://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

async function ask(trusted: readonly string[] | undefined, host: string): Promise<WireAnswer> {
  const options = trusted === undefined ? {} : { trustedCertificates: trusted };
  const wire = new Wire({ ...defaultWireOptions, ...options }, addressRules([]), systemClock);
  try {
    return await wire.exchange({
      origin,
      path: "/",
      method: "POST",
      headers: { host },
      body: "{}",
      totalMs: 5000,
      signal: new AbortController().signal,
      isDetachedOnceSent: true,
      onSending: () => undefined,
    });
  } finally {
    await wire.close();
  }
}

describe("a vendor's certificate", () => {
  it("is accepted from an authority that is trusted, for the name that is meant", async () => {
    assert.equal((await ask([authority.pem], "vendor.example")).status, 200);
  });

  it("is refused from any other, before anything is sent", async () => {
    await assert.rejects(ask(undefined, "vendor.example"), (error) => {
      assert.ok(error instanceof WireError);
      assert.equal(error.kind, "unreachable");
      assert.match(error.message, /TLS failed/);
      return !error.isSent;
    });
  });

  it("is refused for another name, before anything is sent", async () => {
    await assert.rejects(ask([authority.pem], "other.example"), (error) => {
      assert.ok(error instanceof WireError);
      assert.match(error.message, /TLS failed/);
      return !error.isSent;
    });
  });
});
