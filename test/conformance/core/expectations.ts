/** What cases expect, said once: refusals with all their details, and instances of one owner. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { expect, unmet } from "./case.ts";
import { describeFailure } from "./rpc-failure.ts";
import type { RpcFailure } from "./rpc-failure.ts";
import type { Subject } from "./subject.ts";
import { describeReply } from "./wire-client.ts";
import type { Reply } from "./wire-client.ts";
import { codesOfReason, preconditionTypes, reasonNames } from "./wire-words.ts";

export interface Refusal {
  /** Any of these. */
  readonly reasons: readonly string[];
  /** Where the reason leaves a choice. */
  readonly codes?: readonly string[];
  /** For mutations: any of these. */
  readonly outcomes?: readonly string[];
  /** Paths that BadRequest has to name. */
  readonly fields?: readonly string[];
  /** Types of PreconditionFailure that have to be there. */
  readonly preconditions?: readonly string[];
  /** True: RetryInfo has to be there. */
  readonly hasRetry?: boolean;
}

/** The failure of a call that has to be refused just so; its details are checked against the lists. */
export function refused(reply: Reply<unknown>, refusal: Refusal): RpcFailure {
  const expected = wordsOf(refusal);
  if (reply.kind === "answer") unmet(expected, describeReply(reply));
  const { failure } = reply;
  const came = (): string => describeFailure(failure);
  expectSoundDetails(failure, expected);
  expect(refusal.reasons.includes(failure.reason ?? ""), expected, came);
  expect(refusal.codes?.includes(failure.code) ?? true, expected, came);
  const { outcomes, fields = [], preconditions = [] } = refusal;
  if (outcomes !== undefined) expect(outcomes.includes(failure.outcome ?? ""), expected, came);
  for (const field of fields) {
    const named = (): string =>
      `${came()}; BadRequest names ${failure.fields.join(", ") || "none"}`;
    expect(failure.fields.includes(field), expected, named);
  }
  for (const type of preconditions) {
    const types = failure.preconditions.map((violation) => violation.type);
    const named = (): string => `${came()}; PreconditionFailure has ${types.join(", ") || "none"}`;
    expect(types.includes(type), expected, named);
  }
  if (refusal.hasRetry === true) {
    const delayMs = failure.retryDelayMs;
    expect(delayMs !== undefined && delayMs > 0, expected, () => `${came()}, without RetryInfo`);
  }
  return failure;
}

/** Every error of an adapter: ErrorInfo of our domain, a reason of the list, that reason's code. */
export function expectSoundDetails(failure: RpcFailure, expected: string): void {
  const { reason, domain, code } = failure;
  const came = (): string => `${describeFailure(failure)}, domain ${domain ?? "absent"}`;
  expect(reason !== undefined, `${expected}, with ErrorInfo`, came);
  expect(domain === "dhp.example.com", `${expected}, with ErrorInfo.domain dhp.example.com`, came);
  expect(reasonNames.includes(reason ?? ""), `${expected}, with a reason of the closed list`, came);
  const codes = codesOfReason[reason ?? ""] ?? [];
  expect(codes.includes(code), `code ${codes.join(" or ")} with reason ${reason}`, came);
  for (const { type } of failure.preconditions) {
    expect(preconditionTypes.includes(type), "a PreconditionFailure.type of the list", () => type);
  }
}

/** An answer's instance is the subject's own. */
export function expectOurs(instance: Instance, subject: Subject): void {
  const expected = `the instance of ${subject.key}, stamp ${subject.stamp}`;
  const came = (): string =>
    `stamp ${instance.stamp}, key "${instance.instanceKey}", cluster "${instance.owner?.cluster ?? ""}"`;
  expect(instance.stamp === subject.stamp, expected, came);
  expect(instance.instanceKey === "" || instance.instanceKey === subject.key, expected, came);
  expect(instance.providerId !== "" && instance.realm !== "", "provider_id and realm", came);
}

/** ResourceInfo says whose it is: the cluster, or the short stamp where the cluster has no room. */
export function expectOwnerNamed({ resource }: RpcFailure, { owner, stamp }: Subject): void {
  const named = resource?.owner ?? "";
  const isNamed = named === owner.cluster || named === stamp;
  const expected = `ResourceInfo.owner "${owner.cluster}", or the stamp ${stamp}`;
  expect(isNamed, expected, () => (resource === undefined ? "no ResourceInfo" : `"${named}"`));
}

function wordsOf({ reasons, codes, outcomes, fields, preconditions, hasRetry }: Refusal): string {
  const known = reasons.flatMap((reason) => codesOfReason[reason] ?? []);
  return [
    `${[...new Set(codes ?? known)].join(" or ")} with reason ${reasons.join(" or ")}`,
    ...(outcomes === undefined ? [] : [`outcome ${outcomes.join(" or ")}`]),
    ...(fields === undefined ? [] : [`BadRequest naming ${fields.join(", ")}`]),
    ...(preconditions === undefined ? [] : [`PreconditionFailure ${preconditions.join(", ")}`]),
    ...(hasRetry === true ? ["RetryInfo"] : []),
  ].join(", ");
}
