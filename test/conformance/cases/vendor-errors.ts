/** What the vendor says, row by row of the contract's table of errors. */
import type { VendorEffect } from "../../../services/vendor-emulator/fault-words.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectSoundDetails, refused } from "../core/expectations.ts";
import type { Refusal } from "../core/expectations.ts";
import { send } from "../core/request-fields.ts";
import { describeFailure } from "../core/rpc-failure.ts";
import type { RpcFailure } from "../core/rpc-failure.ts";
import type { RuleId } from "../core/rules.ts";
import { shared } from "../core/shared-subjects.ts";
import {
  admitted,
  askedSince,
  finished,
  succeedTwice,
  vendorChanges,
} from "../core/vendor-changes.ts";
import type { VendorChange } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";
import type { Reply } from "../core/wire-client.ts";

/** One row: what the vendor says, and what the caller must get. */
interface Row {
  readonly effect: VendorEffect;
  readonly checks: readonly RuleId[];
  readonly refusal: Refusal;
  /** Outcomes of a change that is answered so; NOT_APPLIED when absent. */
  readonly outcomes?: readonly string[];
  /** The vendor's hint, where it gives one. */
  readonly retryAfterMs?: number;
  /** Beside the effect's name, where a row is there twice. */
  readonly suffix?: string;
  /** True: it is said of the request's content, so reads never get it. */
  readonly isOfContent?: boolean;
  readonly fix: string;
}

const classify = "give the vendor's answer its row in the table of errors: ";

const rows: readonly Row[] = [
  {
    effect: "bad-value",
    checks: ["error:bad-value"],
    refusal: { reasons: ["INVALID_FIELD"] },
    isOfContent: true,
    fix: `${classify}INVALID_FIELD, with the field's path where the vendor names it`,
  },
  {
    effect: "busy",
    checks: ["error:busy"],
    refusal: { reasons: ["BUSY"], hasRetry: true },
    isOfContent: true,
    fix: `${classify}BUSY, with RetryInfo`,
  },
  {
    effect: "throttled",
    suffix: "with-a-hint",
    checks: ["error:throttled"],
    refusal: { reasons: ["THROTTLED"], hasRetry: true },
    retryAfterMs: 3_000,
    fix: `${classify}THROTTLED, with the vendor's hint as RetryInfo`,
  },
  {
    effect: "throttled",
    suffix: "without-a-hint",
    checks: ["error:throttled"],
    refusal: { reasons: ["THROTTLED"], hasRetry: true },
    fix: `${classify}THROTTLED, with a RetryInfo of your own where the vendor gives no hint`,
  },
  {
    effect: "quota-exhausted",
    checks: ["error:quota"],
    refusal: { reasons: ["QUOTA_EXHAUSTED"] },
    fix: `${classify}QUOTA_EXHAUSTED, with QuotaFailure, and QuotaReset where the vendor says when`,
  },
  {
    effect: "billing-stopped",
    checks: ["error:billing", "list:precondition"],
    refusal: { reasons: ["BILLING_STOPPED"], preconditions: ["BILLING"] },
    fix: `${classify}BILLING_STOPPED, with PreconditionFailure BILLING`,
  },
  {
    effect: "bad-credential",
    checks: ["error:credential"],
    refusal: { reasons: ["BAD_CREDENTIAL"] },
    fix: `${classify}BAD_CREDENTIAL; a refused credential says nothing about an instance`,
  },
  {
    effect: "missing-scope",
    checks: ["error:credential"],
    refusal: { reasons: ["MISSING_SCOPE"] },
    fix: `${classify}MISSING_SCOPE; what may not be seen is not absent`,
  },
  {
    effect: "server-error",
    checks: ["error:vendor-failure"],
    refusal: { reasons: ["VENDOR_ERROR", "VENDOR_UNREADABLE"], codes: ["UNAVAILABLE"] },
    outcomes: ["UNKNOWN"],
    fix: `${classify}VENDOR_ERROR; after a mutation was sent its outcome is UNKNOWN`,
  },
  {
    effect: "bad-gateway",
    checks: ["error:vendor-failure"],
    refusal: { reasons: ["VENDOR_ERROR", "VENDOR_UNREADABLE"], codes: ["UNAVAILABLE"] },
    outcomes: ["UNKNOWN"],
    fix: `${classify}VENDOR_ERROR; a proxy's page is no answer of the vendor`,
  },
];

function nameOf({ effect, suffix }: Row): string {
  return suffix === undefined ? effect : `${effect}-${suffix}`;
}

/** What goes with a reason whatever the call was. */
function expectHints(failure: RpcFailure, { effect, retryAfterMs }: Row): void {
  const came = (): string => `${describeFailure(failure)}; retry after ${failure.retryDelayMs} ms`;
  if (effect === "throttled" || effect === "quota-exhausted") {
    expect(failure.quotas !== undefined, "QuotaFailure that says which quota", came);
  }
  if (retryAfterMs === undefined) return;
  const delayMs = failure.retryDelayMs ?? 0;
  const isHeeded = delayMs >= retryAfterMs * 0.5 && delayMs <= retryAfterMs * 2;
  expect(isHeeded, `RetryInfo of about ${retryAfterMs} ms, as the vendor says`, came);
}

function changeCase(row: Row, change: VendorChange): ConformanceCase {
  const { effect, checks, refusal, outcomes = ["NOT_APPLIED"], retryAfterMs, fix } = row;
  const { operation } = change;
  const name = `${operation}-${nameOf(row)}`;
  return {
    name: `vendor-errors/${name}`,
    promise: `a request to ${operation} that the vendor answers with "${effect}" is ${refusal.reasons.join(" or ")}, and takes effect once when asked again`,
    checks: [...checks, "list:reason", "list:outcome"],
    needs: [...change.needs, { kind: "effect", name: effect }],
    fix,
    timeoutMs: 60_000,
    run: async (bench) => {
      const isFailure = outcomes.includes("UNKNOWN");
      if (isFailure) await succeedTwice(bench, name);
      const subject = await change.prepare(bench, name);
      const hint = retryAfterMs === undefined ? {} : { retryAfterMs };
      await bench.faults.arm({ operation, effect, times: 1, ...hint });
      const mark = await bench.faults.mark();
      const reply = await admitted(() => change.send(subject));
      expectHints(refused(reply, { ...refusal, outcomes }), row);
      const count = await askedSince(bench, mark, operation);
      expect(count === 1, `one request to ${operation} in this call`, () => `${count} came`);
      return await finished(bench, change, subject);
    },
  };
}

function readCase(row: Row): ConformanceCase {
  const { effect, checks, refusal, retryAfterMs, fix } = row;
  return {
    name: `vendor-errors/read-${nameOf(row)}`,
    promise: `looks that the vendor answers with "${effect}" are ${refusal.reasons.join(" or ")}, never NOT_FOUND, and work again at once`,
    checks: [...checks, "list:reason"],
    needs: [{ kind: "effect", name: effect }],
    fix,
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId, realm } = instance;
      const looks = [
        () => subject.describe(),
        () => subject.describe({ recorded: { providerId, realm } }),
        ...(bench.hasCapability("LIST_BY_OWNER")
          ? [() => send({ bench, rpc: "list", subject })]
          : []),
      ];
      const hint = retryAfterMs === undefined ? {} : { retryAfterMs };
      for (const look of looks) {
        await bench.faults.arm({ operation: "any", effect, times: 10_000, ...hint });
        const reply = await look();
        await bench.faults.reset();
        expectHints(refused(reply, refusal), row);
        await subject.answered(look(), "OK once the vendor is well again");
      }
    },
  };
}

/** Reads and removals that meet something other than the vendor's word on this very instance. */
function neverNotFound(reply: Reply<unknown>, what: string): void {
  const expected = `${what} to fail, but not with NOT_FOUND`;
  if (reply.kind === "answer") unmet(expected, describeReply(reply));
  expectSoundDetails(reply.failure, expected);
  expect(reply.failure.code !== "NOT_FOUND", expected, () => describeFailure(reply.failure));
}

export const vendorErrorCases: readonly ConformanceCase[] = [
  ...vendorChanges.flatMap((change) =>
    rows
      .filter(({ effect }) => effect !== "bad-value" || change.operation !== "delete")
      .map((row) => changeCase(row, change)),
  ),
  ...rows.filter(({ isOfContent }) => isOfContent !== true).map(readCase),
  {
    name: "vendor-errors/wrong-path-is-no-absence",
    promise: "a 404 that does not speak of this very instance never becomes NOT_FOUND",
    checks: ["error:absent", "list:reason"],
    needs: [{ kind: "effect", name: "wrong-path" }],
    fix: "only the vendor's own word for this instance is NOT_FOUND: look at the body, not at the status",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId, realm } = instance;
      const recorded = { providerId, realm };
      await bench.faults.arm({ operation: "any", effect: "wrong-path", times: 10_000 });
      neverNotFound(await subject.describe(), "Describe by key");
      neverNotFound(await subject.describe({ recorded }), "Describe by id");
      if (bench.hasCapability("DELETE")) {
        neverNotFound(await subject.delete({ recorded }), "Delete");
      }
      await bench.faults.reset();
      const again = await subject.answered(subject.describe(), "the instance untouched");
      const id = again.instance?.providerId;
      expect(id === providerId, `instance ${providerId}`, () => `${id}`);
    },
  },
  ...vendorChanges.map((change): ConformanceCase => ({
    name: `vendor-errors/${change.operation}-wrong-path`,
    promise: `a 404 on the vendor's way to ${change.operation} is no word on the instance: not NOT_FOUND, not done`,
    checks: ["error:absent", "list:reason", "list:outcome"],
    needs: [...change.needs, { kind: "effect", name: "wrong-path" }],
    fix: "only the vendor's own word for this instance is absence: look at the body, not at the status",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { operation } = change;
      await succeedTwice(bench, `${operation}-wrong-path`);
      const subject = await change.prepare(bench, `${operation}-wrong-path`);
      await bench.faults.arm({ operation, effect: "wrong-path" });
      neverNotFound(
        await admitted(() => change.send(subject)),
        `the call that has to ${operation}`,
      );
      return await finished(bench, change, subject);
    },
  })),
  {
    name: "vendor-errors/waits-for-a-person",
    promise: "an instance that waits for a person is OK, AWAITING_HUMAN, with what to do",
    checks: ["error:awaiting-human", "list:state"],
    needs: [{ kind: "switch", name: "awaitsHuman" }],
    fix: "answer OK with state AWAITING_HUMAN, action.text and, where there is one, action.url; set poll_after",
    run: async (bench) => {
      const subject = bench.subject("awaiting");
      await bench.faults.turn({ awaitsHuman: true });
      const { instance, pollAfter } = await subject.answered(subject.ensure(), "OK");
      const came = (): string => `state ${instance?.state}, action "${instance?.action?.text}"`;
      const isWaiting = instance?.state === 3 && (instance.action?.text ?? "") !== "";
      expect(isWaiting, "state AWAITING_HUMAN with action.text", came);
      expect(pollAfter !== undefined, "poll_after", () => "it is absent");
      const url = instance?.action?.url ?? "";
      expect(url === "" || URL.canParse(url), "action.url to be one, or empty", () => url);
    },
  },
  {
    name: "vendor-errors/provisioning-says-when-to-ask",
    promise: "an instance that is being made is PROVISIONING with poll_after, and READY later",
    checks: ["list:state"],
    needs: [{ kind: "switch", name: "provisionMs" }],
    fix: "map the vendor's state of making to PROVISIONING, and set poll_after",
    run: async (bench) => {
      const subject = bench.subject("provisioning");
      await bench.faults.turn({ provisionMs: 1_500 });
      const { instance, pollAfter } = await subject.answered(subject.ensure(), "OK");
      expect(instance?.state === 1, "state PROVISIONING", () => `${instance?.state}`);
      expect(pollAfter !== undefined, "poll_after", () => "it is absent");
      return {
        afterMs: 2_000,
        check: async () => {
          const later = await subject.made();
          expect(later.state === 2, "state READY", () => `${later.state}`);
        },
      };
    },
  },
];
