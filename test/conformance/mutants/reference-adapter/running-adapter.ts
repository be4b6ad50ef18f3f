/** One adapter put together and serving, in this process. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Server as HttpServer } from "node:http";
import { ServerCredentials } from "@grpc/grpc-js";
import { Accounts } from "./accounts.ts";
import type { AdapterOptions } from "./adapter-options.ts";
import { Flights } from "./flights.ts";
import { Mutations, parseMutationNames } from "./mutations.ts";
import { ReferenceServer } from "./server.ts";
import { Wire } from "./wire.ts";
import { capabilityNames } from "./world.ts";
import type { World } from "./world.ts";

export interface RunningAdapter {
  readonly port: number;
  readonly mutations: Mutations;
  drain(): Promise<void>;
  close(): Promise<void>;
}

export async function startAdapter(
  options: AdapterOptions,
  log: World["log"],
): Promise<RunningAdapter> {
  const mutations = new Mutations(parseMutationNames(options.mutants ?? ""));
  const world = worldOf(options, mutations, log);
  world.accounts.warmUp();
  const counts = new Map<string, number>();
  const server = new ReferenceServer(world, ({ rpc, code }) => {
    counts.set(`${rpc} ${code}`, (counts.get(`${rpc} ${code}`) ?? 0) + 1);
    log({ rpc, code, ...leaked(world, "secret-in-log") }, "call ended");
  });
  const { host, port: wanted } = options.listen;
  const port = await server.listen(`${host}:${wanted}`, credentialsOf(options, mutations));
  const metrics = await serveMetrics(options, () => metricsText(counts, world));
  return {
    port,
    mutations,
    drain: () => server.drain(),
    close: async () => {
      metrics?.close();
      await server.close();
    },
  };
}

function worldOf(options: AdapterOptions, mutations: Mutations, log: World["log"]): World {
  const without = (options.without ?? "").split(",");
  return {
    mutations,
    capabilities: capabilityNames.filter((name) => !without.includes(name)),
    accounts: new Accounts(options.accounts, mutations),
    wire: new Wire(options.vendorCa, options.connectTo, mutations),
    flights: new Flights(mutations),
    breakers: new Map(),
    log,
  };
}

function leaked(
  { accounts, mutations }: World,
  name: "secret-in-log" | "secret-in-metrics",
): { readonly token?: string } {
  const [token] = accounts.secrets;
  return token !== undefined && mutations.has(name) ? { token } : {};
}

function credentialsOf(
  { tlsCert, tlsKey, tlsCa }: AdapterOptions,
  mutations: Mutations,
): ServerCredentials {
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) {
    return ServerCredentials.createInsecure();
  }
  const pair = { cert_chain: readFileSync(tlsCert), private_key: readFileSync(tlsKey) };
  const isOpen = mutations.has("serves-without-certificate");
  return ServerCredentials.createSsl(readFileSync(tlsCa), [pair], !isOpen);
}

function metricsText(counts: ReadonlyMap<string, number>, world: World): string {
  const { token } = leaked(world, "secret-in-metrics");
  const more = token === undefined ? "" : `,token="${token}"`;
  const lines = [...counts].map(([name, count]) => {
    const [rpc = "", code = ""] = name.split(" ");
    return `reference_calls_total{rpc="${rpc}",code="${code}"${more}} ${count}`;
  });
  return `# TYPE reference_calls_total counter\n${lines.join("\n")}\n`;
}

async function serveMetrics(
  { adminListen }: AdapterOptions,
  textOf: () => string,
): Promise<HttpServer | undefined> {
  if (adminListen === undefined || adminListen.port === 0) return undefined;
  const { host, port } = adminListen;
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/plain" }).end(textOf());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return server;
}
