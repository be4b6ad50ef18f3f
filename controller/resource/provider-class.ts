/** DigitalHumanProviderClass as the controller reads it: which adapter serves which endpoints. */
import {
  arrayAt,
  definedOnly,
  isJsonObject,
  numberAt,
  objectAt,
  stringAt,
  stringMapAt,
  stringsAt,
} from "./json-door.ts";
import { classInUseFinalizer, defaultClassAnnotation } from "./names.ts";

export interface ProviderClass {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  /** It carries our finalizer: it stays until nobody uses it. */
  readonly isProtected: boolean;
  readonly isDefault: boolean;
  readonly adapter: AdapterAddress;
  /** "tts.example.com" or "*.example.com". */
  readonly endpointHosts: readonly string[];
  /** Empty: the adapter's default account. */
  readonly account: string;
  /** Defaults for spec.parameters. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Absent: all namespaces. */
  readonly allowedNamespaces?: readonly string[];
  readonly deletionPolicy?: "Delete" | "Retain";
  readonly maxConcurrentCalls?: number;
  /** Absent: no bound. */
  readonly maxDeletionsPerMinute?: number;
  readonly provisioningSeconds: number;
  /** Knowledge older than this counts as none. */
  readonly freshnessSeconds: number;
  /** Absent: no advice. */
  readonly scaleOutAtPercent?: number;
}

/** True when no object can be served otherwise by the one than by the other. */
export function isSameToObjects(one: ProviderClass, other: ProviderClass): boolean {
  const relevant = (found: ProviderClass): string =>
    JSON.stringify({ ...found, isProtected: false });
  return relevant(one) === relevant(other);
}

export interface AdapterAddress {
  /** gRPC target: host:port, dns:///..., ipv4:a:1,b:2. */
  readonly address: string;
  /** True: mutual TLS with the controller's mounted certificates. */
  readonly isTls: boolean;
  /** Name expected in the adapter's certificate, where it differs from the address. */
  readonly serverName?: string;
}

const provisioningSecondsDefault = 600;
const freshnessSecondsDefault = 10;

export function parseProviderClass(raw: unknown): ProviderClass {
  const metadata = objectAt(raw, "metadata");
  const spec = objectAt(raw, "spec");
  const adapter = objectAt(spec, "adapter");
  const policy = stringAt(spec, "deletionPolicy");
  const namespaces = arrayAt(spec, "allowedNamespaces");
  return {
    ...definedOnly({
      allowedNamespaces: namespaces.length > 0 ? stringsAt(spec, "allowedNamespaces") : undefined,
      deletionPolicy: policy === "Delete" || policy === "Retain" ? policy : undefined,
      maxConcurrentCalls: numberAt(spec, "maxConcurrentCalls"),
      maxDeletionsPerMinute: numberAt(spec, "maxDeletionsPerMinute"),
      scaleOutAtPercent: numberAt(spec, "scaleOutAtPercent"),
    }),
    name: stringAt(metadata, "name") ?? "",
    uid: stringAt(metadata, "uid") ?? "",
    generation: numberAt(metadata, "generation") ?? 0,
    isDeleting: stringAt(metadata, "deletionTimestamp") !== undefined,
    isProtected: stringsAt(metadata, "finalizers").includes(classInUseFinalizer),
    isDefault: stringMapAt(metadata, "annotations")[defaultClassAnnotation] === "true",
    adapter: {
      address: stringAt(adapter, "address") ?? "",
      isTls: isJsonObject(adapter["tls"]) && stringAt(adapter["tls"], "mode") !== "Disabled",
      ...definedOnly({ serverName: stringAt(adapter["tls"], "serverName") }),
    },
    endpointHosts: stringsAt(spec, "endpointHosts"),
    account: stringAt(spec, "account") ?? "",
    parameters: stringMapAt(spec, "parameters"),
    provisioningSeconds: numberAt(spec, "provisioningSeconds") ?? provisioningSecondsDefault,
    freshnessSeconds: numberAt(spec, "freshnessSeconds") ?? freshnessSecondsDefault,
  };
}
