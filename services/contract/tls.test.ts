import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";

import { EnsureResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { silentLog } from "../process/log.ts";
import { connectProvider } from "./client.ts";
import { ProviderError } from "./provider-error.ts";
import { serveProvider } from "./server.ts";
import {
  closeAtEnd,
  collectingLog,
  connect,
  ensureRequest,
  eventually,
  failureOf,
  inTime,
  serve,
} from "./test-bench.ts";
import { createTestAuthority, testTlsFiles } from "./test-certificates.ts";
import type { TestAuthority, TestTlsFiles } from "./test-certificates.ts";

const handlers = { ensure: () => Promise.resolve(create(EnsureResponseSchema)) };
const quickReload = { certificateRefreshMs: 20 };

async function filesFor(authority: TestAuthority, trusted = authority.pem): Promise<TestTlsFiles> {
  const files = testTlsFiles(await authority.issue(["localhost", "127.0.0.1"]), trusted);
  closeAtEnd(() => files.remove());
  return files;
}

function tlsOf({ certFile, keyFile, caFile }: TestTlsFiles) {
  return { certFile, keyFile, caFile };
}

/** The serial number of the certificate that the server shows. */
function shownSerial(port: number, files: TestTlsFiles): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls(
      {
        host: "127.0.0.1",
        port,
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
        cert: readFileSync(files.certFile),
        key: readFileSync(files.keyFile),
      },
      () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      },
    );
    socket.once("error", reject);
  });
}

test("peers that trust each other's authority talk; the name must match", async () => {
  const authority = await createTestAuthority("one");
  const server = await serve(handlers, { tls: tlsOf(await filesFor(authority)) });
  const tls = tlsOf(await filesFor(authority));
  await connect(server.port, { tls }).ensure(ensureRequest, inTime);
  await connect(server.port, { tls: { ...tls, serverName: "localhost" } }).ensure(
    ensureRequest,
    inTime,
  );
  const otherName = connect(server.port, { tls: { ...tls, serverName: "adapter.example.com" } });
  assert.equal((await failureOf(otherName.ensure(ensureRequest, inTime))).code, "UNAVAILABLE");
});

test("a client without a certificate, with a stranger's, or in plaintext gets no answer", async () => {
  const authority = await createTestAuthority("one");
  const stranger = await createTestAuthority("two");
  const server = await serve(handlers, { tls: tlsOf(await filesFor(authority)) });
  const { caFile } = await filesFor(authority);
  const strangerTls = tlsOf(await filesFor(stranger, authority.pem));
  for (const options of [{ tls: { caFile } }, { tls: strangerTls }, {}]) {
    const failure = await failureOf(
      connect(server.port, options).ensure(ensureRequest, { deadlineMs: 3_000 }),
    );
    assert.notEqual(failure.code, "OK");
    assert.equal(failure.reason, undefined);
  }
});

test("a client does not talk to a server of another authority", async () => {
  const authority = await createTestAuthority("one");
  const impostor = await createTestAuthority("two");
  const server = await serve(handlers, { tls: tlsOf(await filesFor(impostor, authority.pem)) });
  const client = connect(server.port, { tls: tlsOf(await filesFor(authority)) });
  const failure = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual([failure.code, failure.outcome], ["UNAVAILABLE", "NOT_APPLIED"]);
});

test("a rotated certificate serves new connections and leaves those that stand", async () => {
  const authority = await createTestAuthority("one");
  const files = await filesFor(authority);
  const server = await serve(handlers, { tls: tlsOf(files), limits: quickReload });
  const client = connect(server.port, { tls: tlsOf(await filesFor(authority)) });
  await client.ensure(ensureRequest, inTime);
  const states: string[] = [];
  client.onStateChange((state) => states.push(state));
  const before = await shownSerial(server.port, files);
  files.write({ pair: await authority.issue(["127.0.0.1"]) });
  let after = before;
  const endMs = performance.now() + 5_000;
  while (after === before && performance.now() < endMs)
    after = await shownSerial(server.port, files);
  assert.notEqual(after, before);
  await client.ensure(ensureRequest, inTime);
  assert.deepEqual(states, []);
});

test("a client follows its server to a new authority without a restart of either", async () => {
  const before = await createTestAuthority("before");
  const after = await createTestAuthority("after");
  const serverFiles = await filesFor(before);
  const clientFiles = await filesFor(before);
  const first = await serve(handlers, { tls: tlsOf(serverFiles), limits: quickReload });
  const client = connect(first.port, { tls: tlsOf(clientFiles), limits: quickReload });
  await client.ensure(ensureRequest, inTime);
  serverFiles.write({ pair: await after.issue(["127.0.0.1"]), ca: after.pem });
  clientFiles.write({ pair: await after.issue(["localhost"]), ca: after.pem });
  await first.close();
  await eventually(() => client.state() !== "READY");
  await serve(handlers, { tls: tlsOf(serverFiles), port: first.port, limits: quickReload });
  await eventually(() => client.state() === "READY");
  await client.ensure(ensureRequest, inTime);
});

test("half a rotation keeps the certificates in use and is logged once", async () => {
  const authority = await createTestAuthority("one");
  const files = await filesFor(authority);
  const { log, lines } = collectingLog();
  const server = await serve(handlers, { tls: tlsOf(files), limits: quickReload, log });
  const other = await authority.issue(["127.0.0.1"]);
  const whole = readFileSync(files.certFile, "utf8");
  files.write({ pair: { cert: other.cert, key: readFileSync(files.keyFile, "utf8") } });
  const logged = (message: string) => lines.filter((line) => line.includes(message)).length;
  await eventually(() => logged("certificates not reloaded") > 0);
  await connect(server.port, { tls: tlsOf(await filesFor(authority)) }).ensure(
    ensureRequest,
    inTime,
  );
  files.write({ pair: other });
  await eventually(() => logged("certificates reloaded") > 0);
  assert.equal(logged("certificates not reloaded"), 1);
  assert.notEqual(readFileSync(files.certFile, "utf8"), whole);
});

test("missing or mismatched files are told at the start", async () => {
  const authority = await createTestAuthority("one");
  const files = await filesFor(authority);
  const other = await filesFor(authority);
  const mixed = { ...tlsOf(files), keyFile: other.keyFile };
  const missing = { ...tlsOf(files), caFile: `${files.caFile}.absent` };
  for (const tls of [mixed, missing]) {
    await assert.rejects(serve(handlers, { tls }));
    assert.throws(
      () => connectProvider({ address: "127.0.0.1:1", tls, log: silentLog }),
      (error) => error instanceof ProviderError && error.code === "UNAVAILABLE",
    );
  }
});

test("plaintext beyond loopback needs an explicit word at either end", async () => {
  const options = { handlers, host: "0.0.0.0", port: 0, log: silentLog };
  await assert.rejects(serveProvider(options), /plaintext/u);
  for (const address of [
    "adapter.dhp.svc:9000",
    "dns:///10.0.0.1:9000",
    "ipv4:127.0.0.1:1,10.0.0.1:1",
  ]) {
    assert.throws(
      () => connectProvider({ address, log: silentLog }),
      (error) => error instanceof ProviderError && error.code === "FAILED_PRECONDITION",
      address,
    );
  }
  for (const address of [
    "localhost:1",
    "[::1]:1",
    "dns:///127.0.0.1:1",
    "ipv4:127.0.0.1:1",
    "unix:/x",
  ]) {
    connectProvider({ address, log: silentLog }).close();
  }
  connectProvider({ address: "10.0.0.1:1", log: silentLog, allowPlaintext: true }).close();
});
