/**
 * The process of the reference adapter: `--mutant=NAME` puts one fault into it, all other options are
 * those of every adapter.
 */
import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";
import { openAccounts } from "../../../services/adapter-host/accounts.ts";
import type { Accounts } from "../../../services/adapter-host/accounts.ts";
import { createHost, defaultHostTimes } from "../../../services/adapter-host/host.ts";
import type { AdapterHost } from "../../../services/adapter-host/host.ts";
import { readAdapterOptions } from "../../../services/adapter-host/host-options.ts";
import type { AdapterOptions } from "../../../services/adapter-host/host-options.ts";
import { runAdapter } from "../../../services/adapter-host/run-adapter.ts";
import { serveProvider } from "../../../services/contract/server.ts";
import { systemClock } from "../../../services/process/clock.ts";
import { createLog } from "../../../services/process/log.ts";
import { optionsOrExit, runProcess } from "../../../services/process/shutdown.ts";
import { addressRules } from "../../../services/vendor-http/allow-list.ts";
import { defaultBreakerOptions } from "../../../services/vendor-http/breaker.ts";
import { parseConnectTo } from "../../../services/vendor-http/connect-to.ts";
import { defaultGatewayOptions, VendorGateway } from "../../../services/vendor-http/http-client.ts";
import { defaultWireOptions } from "../../../services/vendor-http/wire.ts";
import { startFaultyServer } from "./faulty-server.ts";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { referenceAdapter } from "./reference-adapter.ts";
import { apiKeys } from "./reference-vendor.ts";

const flag = "--mutant=";
const name = process.argv.find((word) => word.startsWith(flag))?.slice(flag.length);
process.argv = process.argv.filter((word) => !word.startsWith(flag));

if (name === undefined) {
  await runAdapter(referenceAdapter);
} else {
  const mutant = mutants.find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant ${name}`);
  await runMutant(mutant);
}

async function runMutant(mutant: Mutant): Promise<void> {
  const options = optionsOrExit(() => readAdapterOptions("reference"));
  const log = createLog({ name: "reference-mutant", level: "info" });
  const clock = systemClock;
  const opened = await openAccounts({ path: options.accounts, clock, log, publicFields: [] });
  const accounts = mutant.accounts?.(opened) ?? opened;
  const adapter = mutant.adapter?.(referenceAdapter) ?? referenceAdapter;
  const newHost = (): AdapterHost => hostOf(mutant, { options, accounts, adapter });
  const host = newHost();
  const ground = {
    newHandlers: () => newHost().handlers,
    say: (text: string) => void process.stdout.write(`${text}\n`),
    secret: () => apiKeys["first"] ?? "",
  };
  const handlers = mutant.handlers?.(host.handlers, ground) ?? host.handlers;
  if (mutant.server !== undefined) {
    const { tlsCert: cert, tlsKey: key, listen } = options;
    const tls = cert === undefined || key === undefined ? undefined : { cert, key };
    await startFaultyServer(handlers, mutant.server, { port: listen.port, tls });
    return;
  }
  await runProcess({
    log,
    stopTimeoutMs: options.drainTimeoutMs,
    start: async (stack) => {
      const server = await serveProvider({ handlers, ...options.listen, log });
      stack.defer("ProviderAPI", async () => {
        await server.drain(options.drainTimeoutMs);
        await host.idle(AbortSignal.timeout(options.drainTimeoutMs));
        await server.close();
      });
    },
  });
}

function hostOf(
  mutant: Mutant,
  parts: {
    readonly options: AdapterOptions;
    readonly accounts: Accounts;
    readonly adapter: Parameters<typeof createHost>[0]["adapter"];
  },
): AdapterHost {
  const { options, accounts, adapter } = parts;
  const trusted = options.vendorCa === undefined ? [] : [readFileSync(options.vendorCa, "utf8")];
  const right = {
    ...defaultGatewayOptions,
    readTimeoutMs: options.readTimeoutMs,
    wire: {
      ...defaultWireOptions,
      trustedCertificates: [...getCACertificates("default"), ...trusted],
    },
    breaker: { ...defaultBreakerOptions, openMs: options.circuitOpenMs },
  };
  const gateway = new VendorGateway({
    clock: systemClock,
    options: mutant.gateway?.(right) ?? right,
    addresses: addressRules(options.allowNetwork),
    connectTo: parseConnectTo(options.connectTo),
    metrics: { requestEnded: () => undefined, circuitChanged: () => undefined },
  });
  return createHost({
    adapter,
    accounts,
    gateway,
    clock: systemClock,
    log: createLog({ name: "reference-mutant", level: "info" }),
    options: {
      ...defaultHostTimes,
      sweepIntervalMs: options.sweepIntervalMs,
      buildVersion: options.buildVersion,
      clockSkewMs: options.clockSkewMs,
      allowsPlainLoopback: options.allowPlainLoopback,
      allowedNetworks: addressRules(options.allowNetwork),
      ...mutant.host,
    },
  });
}
