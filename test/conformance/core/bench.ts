/** What a case works with: the client, the parameters, what the adapter says of itself, and subjects. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { GetProviderInfoResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { AdapterLauncher } from "./adapter-process.ts";
import { unmet } from "./case.ts";
import type { FaultPort } from "./fault-port.ts";
import type { SuiteParameters } from "./parameters.ts";
import { Subject } from "./subject.ts";
import type { SettlingTimes, SubjectParts } from "./subject.ts";
import { capabilityName } from "./wire-words.ts";
import type { CapabilityName } from "./wire-words.ts";
import { WireClient } from "./wire-client.ts";
import type { WireClientOptions } from "./wire-client.ts";

/** What of a subject is not as usual. */
type OwnSubject = Partial<Pick<SubjectParts, "key" | "owner" | "target" | "spec">>;

export interface BenchParts {
  /** Lower-case letters and digits; unique for each run. */
  readonly runId: string;
  readonly parameters: SuiteParameters;
  readonly info: GetProviderInfoResponse;
  readonly wire: WireClientOptions;
  readonly faults: FaultPort | undefined;
  readonly launcher: AdapterLauncher | undefined;
}

const mutationDeadlineMsDefault = 60_000;

export class Bench {
  readonly parameters: SuiteParameters;
  readonly info: GetProviderInfoResponse;
  readonly runId: string;
  /** The owner of everything that the run makes. */
  readonly cluster: string;
  /** Another owner of the run, for what belongs to somebody else. */
  readonly otherCluster: string;
  readonly settling: SettlingTimes;
  /** All subjects that may have left something: the end of the run removes them. */
  readonly subjects: Subject[] = [];
  readonly wire: WireClientOptions;
  readonly #parts: BenchParts;
  #client: WireClient;

  constructor(parts: BenchParts) {
    this.#parts = parts;
    this.parameters = parts.parameters;
    this.info = parts.info;
    this.runId = parts.runId;
    this.cluster = `conformance-${parts.runId}`;
    this.otherCluster = `conformance-${parts.runId}-other`;
    this.settling = settlingTimesOf(parts.info);
    this.wire = parts.wire;
    this.#client = new WireClient(parts.wire);
  }

  get client(): WireClient {
    return this.#client;
  }

  /** The emulator's port. Only for cases that need it. */
  get faults(): FaultPort {
    return this.#parts.faults ?? unmet("a vendor's fault port", "there is none");
  }

  get hasFaults(): boolean {
    return this.#parts.faults !== undefined;
  }

  /** The adapter's process. Only for cases that need it. */
  get launcher(): AdapterLauncher {
    return this.#parts.launcher ?? unmet("a process of the suite's own", "there is none");
  }

  get hasLauncher(): boolean {
    return this.#parts.launcher !== undefined;
  }

  hasCapability(name: CapabilityName): boolean {
    return this.info.capabilities.some((capability) => capabilityName(capability) === name);
  }

  /** A new key and everything to ask for it. @param name within the run: a DNS label */
  subject(name: string, own: OwnSubject = {}): Subject {
    const subject = this.unmade(name, own);
    this.subjects.push(subject);
    return subject;
  }

  /** The same for a case that can make nothing of it: the end of the run does not remove it. */
  unmade(name: string, own: OwnSubject = {}): Subject {
    const { parameters } = this;
    const displayName = `${this.runId} ${name}`.slice(0, this.info.limits?.nameBytesMax ?? 60);
    return new Subject({
      key: `conformance-${this.runId}/default/${name}`,
      owner: { cluster: this.cluster, uid: `uid-${name}` },
      target: parameters.target,
      spec: {
        ...(parameters.displayName ? { displayName } : {}),
        parameters: { ...parameters.parameters },
      },
      settling: this.settling,
      client: () => this.#client,
      ...own,
    });
  }

  /** Another connection, closed by whoever asked for it. */
  connect(own: Partial<WireClientOptions> = {}): WireClient {
    return new WireClient({ ...this.wire, ...own });
  }

  /** After the adapter has been started anew: a fresh connection. What has leaked stays known. */
  reconnect(): void {
    const { seenSecrets } = this.#client;
    this.#client.close();
    this.#client = new WireClient(this.wire);
    this.#client.seenSecrets.push(...seenSecrets);
  }

  close(): void {
    this.#client.close();
  }
}

export function settlingTimesOf(info: GetProviderInfoResponse): SettlingTimes {
  const { visibilityLag, limits } = info;
  return {
    mutationDeadlineMs: msOf(limits?.mutationDeadline, mutationDeadlineMsDefault),
    visibilityLagMs: msOf(visibilityLag, 0),
    clockSkewMs: msOf(limits?.clockSkewAllowance, 0),
  };
}

function msOf(duration: Duration | undefined, absentMs: number): number {
  return duration === undefined ? absentMs : durationMs(duration);
}
