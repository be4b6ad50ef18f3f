/** The options of every adapter process. */
import type { Option } from "../process/options.ts";
import { readOptions } from "../process/options.ts";
import type { OptionSet, OptionsSpec, ValuesOf } from "../process/options.ts";
import {
  duration,
  file,
  hostPort,
  oneOf,
  optional,
  repeated,
  text,
  toggle,
} from "../process/option-kinds.ts";
import { logLevels } from "../process/log.ts";
import { addressRules } from "../vendor-http/allow-list.ts";
import { defaultBreakerOptions } from "../vendor-http/breaker.ts";
import { parseConnectTo } from "../vendor-http/connect-to.ts";
import { defaultGatewayOptions } from "../vendor-http/http-client.ts";
import { defaultHostTimes } from "./host.ts";

const options = {
  listen: hostPort({
    help: "Where ProviderAPI is served; port 0 takes a free one.",
    default: { host: "127.0.0.1", port: 50_051 },
  }),
  adminListen: hostPort({
    help: "Where /metrics, /healthz and /readyz are served; port 0 takes a free one.",
    default: { host: "127.0.0.1", port: 8_081 },
  }),
  portFile: optional(
    text({ help: 'Written once everything listens: {"grpcPort":...,"adminPort":...} as JSON.' }),
  ),
  accounts: file({ help: "The accounts file (JSON or YAML); looked at again while running." }),
  tlsCert: optional(
    file({ help: "This server's certificate (PEM); with --tls-key and --tls-ca." }),
  ),
  tlsKey: optional(file({ help: "Its private key (PEM)." })),
  tlsCa: optional(file({ help: "The authority that clients' certificates must come from (PEM)." })),
  allowPlaintext: toggle({ help: "Serve without TLS on an address that is not loopback." }),
  connectTo: repeated(
    checked(
      { help: "https://HOST=http://127.0.0.1:PORT: reach that endpoint on this machine instead." },
      (value) => parseConnectTo([value]),
    ),
    100,
  ),
  allowNetwork: repeated(
    checked({ help: "A private network (CIDR) that vendors may be reached in." }, (value) =>
      addressRules([value]),
    ),
    100,
  ),
  allowPlainLoopback: toggle({ help: "Accept endpoints http://127.0.0.1:PORT." }),
  vendorCa: optional(
    file({ help: "Authorities (PEM) to trust beside the usual ones, for vendors." }),
  ),
  readTimeoutMs: duration({
    help: "Longest wait for a vendor's answer to a read.",
    default: defaultGatewayOptions.readTimeoutMs,
    msMax: 300_000,
  }),
  circuitOpenMs: duration({
    help: "How long a vendor is left alone after repeated failures.",
    default: defaultBreakerOptions.openMs,
    msMax: 600_000,
  }),
  sweepIntervalMs: duration({
    help: "How often each place is looked at while a controller watches its health.",
    default: defaultHostTimes.sweepIntervalMs,
    msMin: 500,
    msMax: 300_000,
  }),
  clockSkewMs: duration({
    help: "Taken off a change's not_after for clocks that differ.",
    default: defaultHostTimes.clockSkewMs,
    msMin: 0,
    msMax: 60_000,
  }),
  drainTimeoutMs: duration({
    help: "After SIGTERM, how long calls in flight may take.",
    default: 20_000,
    msMax: 600_000,
  }),
  buildVersion: text({ help: "What GetProviderInfo calls this build.", default: "development" }),
  logLevel: oneOf({ help: "Lines below this are left out.", values: logLevels, default: "info" }),
} as const satisfies OptionSet;

export type AdapterOptions = ValuesOf<typeof options>;

/** @throws HelpRequested, OptionsError */
export function readAdapterOptions(
  adapterName: string,
  argv: readonly string[] = process.argv.slice(2),
  env: Readonly<Record<string, string | undefined>> = process.env,
): AdapterOptions {
  const spec: OptionsSpec<typeof options> = {
    program: `dhp-adapter-${adapterName}`,
    summary: `serves ProviderAPI for ${adapterName}`,
    options,
    check: ({ tlsCert, tlsKey, tlsCa }) => {
      const given = [tlsCert, tlsKey, tlsCa].filter((path) => path !== undefined).length;
      return given === 0 || given === 3 ? [] : ["--tls-cert, --tls-key and --tls-ca go together"];
    },
  };
  return readOptions(spec, argv, env);
}

/** A text that `read` accepts; what it throws is the mistake. */
function checked(
  described: { readonly help: string },
  read: (value: string) => unknown,
): Option<string> {
  const option = text(described);
  return {
    ...option,
    parse: (texts) => {
      const parsed = option.parse(texts);
      if (parsed.kind === "mistake") return parsed;
      try {
        read(parsed.value);
        return parsed;
      } catch (error) {
        return { kind: "mistake", mistake: error instanceof Error ? error.message : String(error) };
      }
    },
  };
}
