import assert from "node:assert/strict";
import { test } from "node:test";
import { adapterSecurity } from "./adapter-security.ts";

const tlsFiles = { certFile: "/tls/tls.crt", keyFile: "/tls/tls.key", caFile: "/tls/ca.crt" };
const remote = "dhp-adapter-livekit.dhp-system.svc:50051";
const local = "127.0.0.1:50051";

function refused(says: RegExp) {
  return { name: "ProviderError", code: "FAILED_PRECONDITION", message: says };
}

test("a class that asks for TLS gets it, with the name that it expects", () => {
  const options = { tlsFiles, allowPlaintext: false };
  assert.deepEqual(adapterSecurity({ address: remote, isTls: true }, options), tlsFiles);
  const named = adapterSecurity({ address: remote, isTls: true, serverName: "a.b" }, options);
  assert.deepEqual(named, { ...tlsFiles, serverName: "a.b" });
});

test("a class that asks for TLS never gets plaintext, whatever is allowed", () => {
  for (const address of [remote, local]) {
    assert.throws(
      () =>
        adapterSecurity({ address, isTls: true }, { tlsFiles: undefined, allowPlaintext: true }),
      refused(/--adapter-tls-folder/),
    );
  }
});

test("plaintext goes to loopback, and further only where the controller allows it", () => {
  const strict = { tlsFiles, allowPlaintext: false };
  assert.equal(adapterSecurity({ address: local, isTls: false }, strict), undefined);
  assert.throws(
    () => adapterSecurity({ address: remote, isTls: false }, strict),
    refused(/not loopback.*tls \{mode: Mutual\}.*--allow-plaintext-adapters/),
  );
  const open = { ...strict, allowPlaintext: true };
  assert.equal(adapterSecurity({ address: remote, isTls: false }, open), undefined);
});
