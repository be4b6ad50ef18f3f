/**
 * Requests as they come from the wire to questions that the rest of the host can rely on. All
 * mistakes of a request are reported at once, by the paths of the Kubernetes spec where the value
 * comes from there. Nothing here touches the vendor.
 */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@bufbuild/protobuf/wkt";

import type {
  Adopt,
  InstanceSpec,
  Owner as OwnerMessage,
  Quota as QuotaMessage,
  Recorded as RecordedMessage,
  Target,
} from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { EnsureRequest } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { FieldViolation } from "../contract/provider-error.ts";
import { checkEndpoint } from "../vendor-http/allow-list.ts";
import type { AddressRules } from "../vendor-http/allow-list.ts";
import type { Account, Accounts } from "./accounts.ts";
import type { AdapterInfo, Quota, VendorCall, WantedInstance } from "./adapter.ts";
import type { ParameterCheck } from "./parameter-schema.ts";
import { makeStamp } from "./stamp.ts";
import type { Owner } from "./stamp.ts";

/** Longest texts, in bytes of UTF-8. */
export const limits = {
  instanceKeyBytesMax: 382,
  clusterBytesMax: 253,
  uidBytesMax: 128,
  endpointBytesMax: 2048,
  regionBytesMax: 63,
  accountBytesMax: 253,
  displayNameCharactersMax: 256,
  parametersMax: 64,
  parameterNameBytesMax: 253,
  parameterBytesMax: 16_384,
  specHashBytesMax: 128,
  providerIdBytesMax: 1024,
  realmBytesMax: 1024,
  pageTokenBytesMax: 8192,
} as const;

/** What an earlier answer said; empty texts: not known. */
export interface Recorded {
  readonly providerId: string;
  readonly realm: string;
}

/** A target whose account exists and whose endpoint that account may use. */
export interface CheckedTarget {
  readonly target: VendorCall["target"];
  readonly endpoint: URL;
  readonly account: Account;
}

/** Which instance. */
export interface InstanceQuestion extends CheckedTarget {
  readonly key: string;
  readonly owner: Owner;
  readonly recorded: Recorded;
}

/** A change to an instance; `notAfterMs` absent: the caller named no end. */
export interface MutationQuestion extends InstanceQuestion {
  readonly notAfterMs: number | undefined;
}

export interface EnsureQuestion extends MutationQuestion {
  readonly wanted: WantedInstance;
  readonly mayCreate: boolean;
  readonly isValidateOnly: boolean;
  readonly adopt: { readonly providerId: string; readonly takeOverFrom?: Owner } | undefined;
}

/** What requests are checked against. */
export interface CheckContext {
  readonly info: AdapterInfo;
  readonly accounts: Accounts;
  readonly checkParameters: (parameters: Readonly<Record<string, string>>) => ParameterCheck;
  readonly allowsPlainLoopback: boolean;
  readonly allowedNetworks: AddressRules;
}

interface InstanceRequest {
  readonly instanceKey: string;
  readonly owner?: OwnerMessage | undefined;
  readonly target?: Target | undefined;
  readonly recorded?: RecordedMessage | undefined;
}

/** Describe. */
export async function checkInstance(
  request: InstanceRequest,
  context: CheckContext,
): Promise<InstanceQuestion> {
  const mistakes = instanceMistakes(request);
  refuse(mistakes);
  return instanceQuestion(request, await checkTarget(request.target, context));
}

/** Delete and Release. */
export async function checkRemoval(
  request: InstanceRequest & { readonly notAfter?: Timestamp | undefined },
  context: CheckContext,
): Promise<MutationQuestion> {
  const question = await checkInstance(request, context);
  return { ...question, notAfterMs: instantOf(request.notAfter) };
}

/** Ensure. */
export async function checkEnsure(
  request: EnsureRequest,
  context: CheckContext,
): Promise<EnsureQuestion> {
  const { spec, specHash, adopt } = request;
  const mistakes = instanceMistakes(request);
  if ((request.owner?.uid ?? "") === "") mistakes.add("owner.uid", "is required");
  mistakes.text("spec_hash", specHash, { bytesMax: limits.specHashBytesMax, mayBeEmpty: true });
  if (spec === undefined) mistakes.add("spec", "is required");
  if (adopt !== undefined) adoptMistakes(adopt, mistakes);
  const wantedSpec = checkSpec(spec, context, mistakes);
  refuse(mistakes);
  const question = instanceQuestion(request, await checkTarget(request.target, context));
  return {
    ...question,
    notAfterMs: instantOf(request.notAfter),
    wanted: { ...wantedSpec, stamp: makeStamp(question.key, question.owner, specHash) },
    mayCreate: request.mayCreate,
    isValidateOnly: request.validateOnly,
    adopt:
      adopt === undefined
        ? undefined
        : {
            providerId: adopt.providerId,
            ...(adopt.takeOverFrom === undefined
              ? {}
              : { takeOverFrom: ownerOf(adopt.takeOverFrom) }),
          },
  };
}

/** The wanted spec of a Describe; refused like that of an Ensure. */
export function checkWantedSpec(
  spec: InstanceSpec,
  context: CheckContext,
): Omit<WantedInstance, "stamp"> {
  const mistakes = new Mistakes();
  const wanted = checkSpec(spec, context, mistakes);
  refuse(mistakes);
  return wanted;
}

/** Account, endpoint and region of a target: UNKNOWN_ACCOUNT, ENDPOINT_NOT_ALLOWED, INVALID_FIELD. */
export async function checkTarget(
  target: Target | undefined,
  context: CheckContext,
): Promise<CheckedTarget> {
  const mistakes = new Mistakes();
  if (target === undefined) mistakes.add("target", "is required");
  const { endpoint = "", region = "", account: name = "" } = target ?? {};
  mistakes.text("endpoint", endpoint, { bytesMax: limits.endpointBytesMax });
  mistakes.text("region", region, { bytesMax: limits.regionBytesMax, mayBeEmpty: true });
  mistakes.text("account", name, { bytesMax: limits.accountBytesMax, mayBeEmpty: true });
  const { regions } = context.info;
  if (regions.length > 0 && !regions.includes(region)) {
    mistakes.add("region", `is none of ${regions.join(", ")}`);
  }
  refuse(mistakes);
  const account = await context.accounts.find(name);
  if (account === undefined) {
    throw new ProviderError("UNKNOWN_ACCOUNT", `account "${name || "default"}" is not known here`, {
      outcome: "NOT_APPLIED",
      fields: [{ path: "account", description: "is no account of this adapter" }],
    });
  }
  const url = checkEndpoint(endpoint, {
    hosts: account.endpointHosts,
    allowsPlainLoopback: context.allowsPlainLoopback,
    allowedNetworks: context.allowedNetworks,
  });
  return { target: { endpoint, region, account: account.name }, endpoint: url, account };
}

/** Collects what is wrong, then says all of it. */
export class Mistakes {
  readonly list: FieldViolation[] = [];

  add(path: string, description: string): void {
    this.list.push({ path, description });
  }

  text(
    path: string,
    value: string,
    rules: { readonly bytesMax: number; readonly mayBeEmpty?: boolean },
  ): void {
    if (value === "") {
      if (rules.mayBeEmpty !== true) this.add(path, "is required");
    } else if (Buffer.byteLength(value) > rules.bytesMax) {
      this.add(path, `is longer than ${rules.bytesMax} bytes`);
    } else if (hasControlCharacter(value)) {
      this.add(path, "has control characters");
    }
  }
}

/** Throws INVALID_FIELD with all of them, or does nothing. */
export function refuse(mistakes: Mistakes): void {
  if (mistakes.list.length === 0) return;
  const words = mistakes.list.map(({ path, description }) => `${path} ${description}`).join("; ");
  throw new ProviderError("INVALID_FIELD", words, {
    outcome: "NOT_APPLIED",
    fields: mistakes.list,
  });
}

function instanceMistakes(request: InstanceRequest): Mistakes {
  const mistakes = new Mistakes();
  const { instanceKey, owner, recorded } = request;
  mistakes.text("instance_key", instanceKey, { bytesMax: limits.instanceKeyBytesMax });
  if (instanceKey !== "" && !/^[^/]+\/[^/]+\/[^/]+$/.test(instanceKey)) {
    mistakes.add("instance_key", "is not of the form fleet/namespace/name");
  }
  mistakes.text("owner.cluster", owner?.cluster ?? "", { bytesMax: limits.clusterBytesMax });
  const uid = { bytesMax: limits.uidBytesMax, mayBeEmpty: true };
  mistakes.text("owner.uid", owner?.uid ?? "", uid);
  const id = { bytesMax: limits.providerIdBytesMax, mayBeEmpty: true };
  mistakes.text("recorded.provider_id", recorded?.providerId ?? "", id);
  const realm = { bytesMax: limits.realmBytesMax, mayBeEmpty: true };
  mistakes.text("recorded.realm", recorded?.realm ?? "", realm);
  return mistakes;
}

function adoptMistakes(adopt: Adopt, mistakes: Mistakes): void {
  const bytesMax = limits.providerIdBytesMax;
  mistakes.text("adopt.providerID", adopt.providerId, { bytesMax });
  const { takeOverFrom } = adopt;
  if (takeOverFrom === undefined) return;
  const cluster = { bytesMax: limits.clusterBytesMax };
  mistakes.text("adopt.takeOverFrom.cluster", takeOverFrom.cluster, cluster);
  mistakes.text("adopt.takeOverFrom.uid", takeOverFrom.uid, { bytesMax: limits.uidBytesMax });
}

function checkSpec(
  spec: InstanceSpec | undefined,
  context: CheckContext,
  mistakes: Mistakes,
): Omit<WantedInstance, "stamp"> {
  const { displayName, parameters = {}, quota } = spec ?? {};
  if (displayName !== undefined) nameMistakes(displayName, context.info, mistakes);
  const entries = Object.entries(parameters);
  if (entries.length > limits.parametersMax) {
    mistakes.add("parameters", `has more than ${limits.parametersMax} entries`);
    return { parameters: {}, quota: {} };
  }
  for (const [name, value] of entries) {
    const path = `parameters.${name}`;
    if (Buffer.byteLength(name) > limits.parameterNameBytesMax) {
      mistakes.add("parameters", `has a name of more than ${limits.parameterNameBytesMax} bytes`);
    } else if (Buffer.byteLength(value) > limits.parameterBytesMax) {
      mistakes.add(path, `is longer than ${limits.parameterBytesMax} bytes`);
    }
  }
  const check = context.checkParameters(parameters);
  if (check.kind === "refused") mistakes.list.push(...check.violations);
  return {
    ...(displayName === undefined ? {} : { displayName }),
    parameters: check.kind === "sound" ? check.parameters : {},
    quota: quotaOf(quota, mistakes),
  };
}

function nameMistakes(displayName: string, info: AdapterInfo, mistakes: Mistakes): void {
  // The Kubernetes schema counts characters; some vendors count bytes.
  const charactersMax = limits.displayNameCharactersMax;
  if (Array.from(displayName).length > charactersMax) {
    mistakes.add("displayName", `is longer than ${charactersMax} characters`);
  } else if (Buffer.byteLength(displayName) > (info.nameBytesMax ?? Infinity)) {
    mistakes.add("displayName", `is longer than this vendor's ${info.nameBytesMax} bytes`);
  } else if (hasControlCharacter(displayName)) {
    mistakes.add("displayName", "has control characters");
  }
}

function quotaOf(quota: QuotaMessage | undefined, mistakes: Mistakes): Quota {
  const read = (name: keyof Quota): Quota => {
    const value = quota?.[name];
    if (value === undefined) return {};
    if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) {
      mistakes.add(`quota.${name}`, "is negative or too large");
    }
    return { [name]: Number(value) };
  };
  return { ...read("maxConcurrency"), ...read("dailyCalls"), ...read("monthlyCredits") };
}

function instanceQuestion(request: InstanceRequest, target: CheckedTarget): InstanceQuestion {
  const { instanceKey, owner, recorded } = request;
  return {
    ...target,
    key: instanceKey,
    owner: ownerOf(owner),
    recorded: { providerId: recorded?.providerId ?? "", realm: recorded?.realm ?? "" },
  };
}

function ownerOf(owner: OwnerMessage | undefined): Owner {
  return { cluster: owner?.cluster ?? "", uid: owner?.uid ?? "" };
}

function instantOf(timestamp: Timestamp | undefined): number | undefined {
  return timestamp === undefined ? undefined : timestampMs(timestamp);
}

function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
