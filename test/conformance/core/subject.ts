/**
 * One instance that a case is about: its key, its owner, where it is, and the requests with everything
 * filled in that a case does not speak of. `converge` and `remove` play the controller: they ask
 * again as it would, and never allow a create while absence proves nothing.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteRequestSchema,
  DeleteResponse,
  DescribeRequestSchema,
  DescribeResponse,
  EnsureRequestSchema,
  EnsureResponse,
  ReleaseRequestSchema,
  ReleaseResponse,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../../../services/process/clock.ts";
import { unmet } from "./case.ts";
import type { SuiteTarget } from "./parameters.ts";
import type { RpcFailure } from "./rpc-failure.ts";
import { keyStamp, ownedStamp } from "./short-stamp.ts";
import { describeReply } from "./wire-client.ts";
import type { Reply, WireCall, WireClient } from "./wire-client.ts";

/** A request's fields as plain data; a made message cannot be spread. */
type Fields<
  Schema extends Parameters<typeof ProviderAPI.method.ensure.input.file.messages.push>[0],
> = Exclude<MessageInitShape<Schema>, { $typeName: string }>;

export type EnsureFields = Fields<typeof EnsureRequestSchema>;
export type DescribeFields = Fields<typeof DescribeRequestSchema>;
export type DeleteFields = Fields<typeof DeleteRequestSchema>;
export type ReleaseFields = Fields<typeof ReleaseRequestSchema>;

/** How long the vendor may leave a mutation unsettled; from GetProviderInfo. */
export interface SettlingTimes {
  readonly mutationDeadlineMs: number;
  readonly visibilityLagMs: number;
  readonly clockSkewMs: number;
}

export interface SubjectParts {
  readonly key: string;
  readonly owner: { readonly cluster: string; readonly uid: string };
  readonly target: SuiteTarget;
  readonly spec: { readonly displayName?: string; readonly parameters: Record<string, string> };
  readonly settling: SettlingTimes;
  /** The client of now: it changes when the adapter is started anew. */
  readonly client: () => WireClient;
}

/** Room between now and not_after, beyond the adapter's allowance for clocks. */
const notAfterRoomMs = 5_000;
const convergeMsMax = 60_000;
const retryMsMin = 50;
const retryMsMax = 2_000;

export class Subject {
  readonly key: string;
  readonly owner: SubjectParts["owner"];
  readonly target: SuiteTarget;
  readonly spec: SubjectParts["spec"];
  /** "dhp-" + 16: in the vendor's record of each of its instances. */
  readonly keyStamp: string;
  /** With the owner's part: Instance.stamp. */
  readonly stamp: string;
  readonly #parts: SubjectParts;
  /** Until when absence proves nothing; epoch ms. */
  #doubtUntilMs = 0;

  constructor(parts: SubjectParts) {
    this.#parts = parts;
    this.key = parts.key;
    this.owner = parts.owner;
    this.target = parts.target;
    this.spec = parts.spec;
    this.keyStamp = keyStamp(parts.key);
    this.stamp = ownedStamp(parts.key, parts.owner.cluster);
  }

  /** The same key as somebody else sees it: another owner, target or spec. */
  as(own: Partial<Pick<SubjectParts, "owner" | "target" | "spec">>): Subject {
    return new Subject({ ...this.#parts, ...own });
  }

  /** The same over another connection. */
  through(client: WireClient): Subject {
    return new Subject({ ...this.#parts, client: () => client });
  }

  /** How long after `notAfter()` a lost mutation may still show. */
  get settlingMs(): number {
    const { mutationDeadlineMs, visibilityLagMs, clockSkewMs } = this.#parts.settling;
    return mutationDeadlineMs + visibilityLagMs + clockSkewMs;
  }

  /** How long absence still proves nothing; 0: it does. */
  get doubtLeftMs(): number {
    return Math.max(0, this.#doubtUntilMs - Date.now());
  }

  /** @param roomMs beyond the adapter's allowance for clocks */
  notAfter(roomMs = notAfterRoomMs): ReturnType<typeof timestampFromMs> {
    return timestampFromMs(Date.now() + this.#parts.settling.clockSkewMs + roomMs);
  }

  /** One Ensure, may_create true unless `own` says otherwise. */
  async ensure(own: EnsureFields = {}, call?: WireCall): Promise<Reply<EnsureResponse>> {
    const request = {
      ...this.#mutation(),
      spec: this.spec,
      specHash: "conformance",
      mayCreate: true,
      ...own,
    };
    const reply = await this.#client.call(ProviderAPI.method.ensure, request, call);
    this.#doubt(reply, request.notAfter);
    return reply;
  }

  async describe(own: DescribeFields = {}, call?: WireCall): Promise<Reply<DescribeResponse>> {
    const { key: instanceKey, owner, target } = this;
    const request = { instanceKey, owner, target, ...own };
    return await this.#client.call(ProviderAPI.method.describe, request, call);
  }

  async delete(own: DeleteFields = {}, call?: WireCall): Promise<Reply<DeleteResponse>> {
    const request = { ...this.#mutation(), ...own };
    const reply = await this.#client.call(ProviderAPI.method.delete, request, call);
    this.#doubt(reply, request.notAfter);
    return reply;
  }

  async release(own: ReleaseFields = {}, call?: WireCall): Promise<Reply<ReleaseResponse>> {
    const request = { ...this.#mutation(), ...own };
    return await this.#client.call(ProviderAPI.method.release, request, call);
  }

  /** One Ensure that has to succeed at once. */
  async made(own: EnsureFields = {}): Promise<Instance> {
    const { instance } = (await this.answered(this.ensure(own), "Ensure to succeed")) ?? {};
    return instance ?? unmet("EnsureResponse.instance", "it is absent");
  }

  /** The answer of a call that has to succeed. */
  async answered<T>(call: Promise<Reply<T>>, expected: string): Promise<T> {
    const reply = await call;
    return reply.kind === "answer" ? reply.answer : unmet(expected, describeReply(reply));
  }

  /** Ensures until it succeeds. Throws Unmet after `timeoutMs`. */
  async converge(own: EnsureFields = {}, timeoutMs = convergeMsMax): Promise<Instance> {
    const endMs = Date.now() + timeoutMs;
    for (;;) {
      const mayCreate = (own.mayCreate ?? true) && Date.now() >= this.#doubtUntilMs;
      const reply = await this.ensure({ ...own, mayCreate });
      if (reply.kind === "answer" && reply.answer.instance !== undefined) {
        return reply.answer.instance;
      }
      if (isFinal(reply)) unmet("an instance", describeReply(reply));
      if (Date.now() > endMs) unmet(`an instance within ${timeoutMs} ms`, describeReply(reply));
      await this.#pause(reply);
    }
  }

  /** Deletes until the vendor attests that it is gone and absence proves something. */
  async remove(own: DeleteFields = {}, timeoutMs = convergeMsMax): Promise<void> {
    const endMs = Date.now() + timeoutMs;
    for (;;) {
      const reply = await this.delete(own);
      if (isGone(reply) && Date.now() >= this.#doubtUntilMs) return;
      if (isFinal(reply)) unmet("it gone", describeReply(reply));
      if (Date.now() > endMs) unmet(`it gone within ${timeoutMs} ms`, describeReply(reply));
      await this.#pause(reply);
    }
  }

  get #client(): WireClient {
    return this.#parts.client();
  }

  #mutation(): DeleteFields & { readonly notAfter: ReturnType<typeof timestampFromMs> } {
    const { key: instanceKey, owner, target } = this;
    return { instanceKey, owner, target, notAfter: this.notAfter() };
  }

  #doubt(reply: Reply<unknown>, notAfter: EnsureFields["notAfter"]): void {
    if (reply.kind === "answer" || isSettled(reply.failure)) return;
    const seconds = Number(notAfter?.seconds ?? 0n);
    const endMs = Math.max(Date.now(), seconds * 1000 + (notAfter?.nanos ?? 0) / 1e6);
    this.#doubtUntilMs = Math.max(this.#doubtUntilMs, endMs + this.settlingMs);
  }

  async #pause(reply: Reply<EnsureResponse | DeleteResponse>): Promise<void> {
    const hintMs = reply.kind === "failure" ? reply.failure.retryDelayMs : pollMsOf(reply.answer);
    const waitMs = Math.min(Math.max(hintMs ?? retryMsMin, retryMsMin), retryMsMax);
    await systemClock.sleep(waitMs);
  }
}

/** True when the failure says that nothing was done, now or later. */
function isSettled(failure: RpcFailure): boolean {
  return failure.outcome === "NOT_APPLIED" || failure.outcome === "APPLIED";
}

/** What no repetition mends: asking on would only take time. */
const finalReasons: readonly string[] = [
  "INVALID_FIELD",
  "UNKNOWN_ACCOUNT",
  "ENDPOINT_NOT_ALLOWED",
  "NOT_OURS",
  "OWNED_BY_ANOTHER",
  "WRONG_REALM",
  "IMMUTABLE_FIELD",
  "UNSUPPORTED",
  "CONTRACT_VERSION",
];

function isFinal(reply: Reply<unknown>): boolean {
  return reply.kind === "failure" && finalReasons.includes(reply.failure.reason ?? "");
}

/** What Delete says when the vendor attests absence. */
export function isGone(reply: Reply<DeleteResponse>): boolean {
  if (reply.kind === "failure") return reply.failure.reason === "NOT_FOUND";
  return reply.answer.state === 1;
}

function pollMsOf({ pollAfter }: EnsureResponse | DeleteResponse): number | undefined {
  return pollAfter === undefined ? undefined : durationMs(pollAfter);
}
