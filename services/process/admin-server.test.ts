import assert from "node:assert/strict";
import { request } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";

import { startAdminServer } from "./admin-server.ts";
import type { AdminServer, AdminServerOptions } from "./admin-server.ts";
import { silentLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { registerSecret } from "./redaction.ts";

const servers: AdminServer[] = [];
after(async () => {
  for (const server of servers) await server.close();
});

async function start(options: Partial<AdminServerOptions> = {}): Promise<AdminServer> {
  const server = await startAdminServer({
    host: "127.0.0.1",
    port: 0,
    metrics: createMetrics(),
    readiness: {},
    log: silentLog,
    ...options,
  });
  servers.push(server);
  return server;
}

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
  readonly contentType: string | undefined;
}

function get(port: number, path: string, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => {
        const contentType = response.headers["content-type"];
        resolve({ status: response.statusCode, body, contentType });
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("metrics are served in the text format", async () => {
  const metrics = createMetrics();
  metrics.counter({ name: "c_total", help: "c", labels: {} }).add({}, 3);
  const { port } = await start({ metrics });
  const answer = await get(port, "/metrics");
  assert.equal(answer.status, 200);
  assert.match(answer.contentType ?? "", /^text\/plain; version=0\.0\.4/u);
  assert.match(answer.body, /^c_total 3$/mu);
});

test("ready is all checks well; each that is not says why", async () => {
  let problem: string | undefined = "not listed yet";
  const { port } = await start({
    readiness: { watch: () => problem, "leader-election": () => undefined },
  });
  const notReady = await get(port, "/readyz");
  assert.equal(notReady.status, 503);
  assert.equal(
    notReady.body,
    "[-]watch failed: not listed yet\n[+]leader-election ok\nreadyz check failed\n",
  );
  problem = undefined;
  assert.deepEqual(
    [(await get(port, "/readyz")).status, (await get(port, "/readyz")).body],
    [200, "ok"],
  );
  const verbose = await get(port, "/readyz?verbose");
  assert.equal(verbose.body, "[+]watch ok\n[+]leader-election ok\nreadyz check passed\n");
});

test("a process that is not ready is alive; liveness has checks of its own", async () => {
  const { port } = await start({
    readiness: { watch: () => "no" },
    liveness: { loop: () => undefined },
  });
  assert.equal((await get(port, "/healthz")).status, 200);
  assert.equal((await get(port, "/healthz?verbose")).body, "[+]loop ok\nhealthz check passed\n");
});

test("a check that throws fails, and no reason carries a secret", async () => {
  registerSecret("sentinel-admin-51");
  const { port } = await start({
    readiness: {
      vendor: () => {
        throw new Error("401 with sentinel-admin-51");
      },
    },
  });
  const { status, body } = await get(port, "/readyz");
  assert.equal(status, 503);
  assert.match(body, /vendor failed: 401 with/u);
  assert.ok(!body.includes("sentinel"));
});

test("other paths and methods are refused", async () => {
  const { port } = await start();
  assert.equal((await get(port, "/")).status, 404);
  assert.equal((await get(port, "/metrics/../etc")).status, 404);
  assert.equal((await get(port, "/metrics", "POST")).status, 405);
  assert.equal((await get(port, "/readyz", "HEAD")).status, 200);
});

test("a failing scrape answers 500 and tells nothing", async () => {
  const metrics = createMetrics();
  metrics.onScrape(() => {
    throw new Error("inner words");
  });
  const { port } = await start({ metrics });
  const { status, body } = await get(port, "/metrics");
  assert.deepEqual([status, body], [500, "internal error\n"]);
});

test("closing drops connections that stand idle, frees the port, and may be repeated", async () => {
  const server = await start();
  const socket = connect(server.port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  const dropped = new Promise((resolve) => socket.once("close", resolve));
  socket.on("error", () => undefined);
  await server.close();
  await dropped;
  await server.close();
  assert.equal((await start({ port: server.port })).port, server.port);
});

test("a port that is taken is told at the start", async () => {
  const { port } = await start();
  await assert.rejects(start({ port }), /cannot open the admin port.*EADDRINUSE/u);
});
