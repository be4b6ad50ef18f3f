/** Many callers at once: one mutation a key, and one instance a key whatever they do. */
import type { EnsureResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectSoundDetails, refused } from "../core/expectations.ts";
import type { Subject } from "../core/subject.ts";
import { describeReply } from "../core/wire-client.ts";
import type { Reply } from "../core/wire-client.ts";

const callersCount = 20;
const keysCount = 40;
const roundsCount = 5;
/** Longer than any adapter may hold back other keys for its lists' sake. */
const heldMs = 4_000;

/** Each is an answer, or ABORTED (BUSY) without effect; ids that were answered. */
function idsOf(replies: readonly Reply<EnsureResponse>[]): ReadonlySet<string> {
  const ids = replies.map((reply) => {
    if (reply.kind === "answer") return reply.answer.instance?.providerId ?? "";
    refused(reply, { reasons: ["BUSY"], outcomes: ["NOT_APPLIED"], hasRetry: true });
    return "";
  });
  return new Set(ids.filter((id) => id !== ""));
}

async function expectOne(bench: Bench, subject: Subject): Promise<void> {
  const { providerId } = await subject.converge();
  if (!bench.hasFaults) return;
  const found = await bench.faults.instancesWith(subject.keyStamp);
  const ids = (): string => found.map(({ id }) => id).join(", ");
  expect(found.length === 1, `one instance, ${providerId}, at the vendor`, ids);
}

const endings = ["BUSY", "NOT_FOUND", "IN_DOUBT"];

function expectEndings(replies: readonly Reply<unknown>[], reasons: readonly string[]): void {
  for (const reply of replies) {
    if (reply.kind === "answer") continue;
    const { reason = "none" } = reply.failure;
    expect(reasons.includes(reason), `OK or ${reasons.join(", ")}`, () => describeReply(reply));
    expectSoundDetails(reply.failure, `OK or ${reasons.join(", ")}`);
  }
}

export const concurrencyCases: readonly ConformanceCase[] = [
  {
    name: "concurrency/twenty-callers-make-one",
    promise:
      "twenty Ensures of one key at once make one instance; who comes second gets it or ABORTED (BUSY)",
    checks: ["rule:one-at-a-time", "error:busy", "list:change"],
    needs: [],
    fix: "take a lock for the key, in this process, around the whole of Ensure, Delete and Release",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("twenty");
      const calls = Array.from({ length: callersCount }, () => subject.ensure());
      const replies = await Promise.all(calls);
      const ids = idsOf(replies);
      expect(ids.size === 1, "one id in all answers", () => [...ids].join(", ") || "none");
      const created = replies.filter(
        (reply) => reply.kind === "answer" && reply.answer.change === Change.CREATED,
      );
      expect(created.length === 1, "one change CREATED", () => `${created.length}`);
      await expectOne(bench, subject);
    },
  },
  {
    name: "concurrency/many-keys-do-not-wait",
    promise: "Ensures of many keys at once are all made, each once",
    checks: ["rule:one-at-a-time"],
    needs: [],
    fix: "lock by key, not for the whole adapter",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subjects = Array.from({ length: keysCount }, (_, at) => bench.subject(`many-${at}`));
      const instances = await Promise.all(subjects.map((subject) => subject.converge()));
      const ids = new Set(instances.map(({ providerId }) => providerId));
      expect(ids.size === keysCount, `${keysCount} different ids`, () => `${ids.size}`);
      if (!bench.hasCapability("DELETE")) return;
      await Promise.all(subjects.map((subject) => subject.remove()));
    },
  },
  {
    name: "concurrency/ensure-against-delete",
    promise:
      "Ensure and Delete of one key at once end in one instance or none, and never in two answers that both claim the key",
    checks: ["rule:one-at-a-time", "rule:deletion"],
    needs: [{ kind: "capability", name: "DELETE" }],
    fix: "Ensure, Delete and Release of one key share one lock",
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("ensure-delete");
      for (let round = 0; round < roundsCount; round += 1) {
        await subject.converge();
        const replies = await Promise.all([
          subject.delete(),
          subject.ensure(),
          subject.delete(),
          subject.ensure(),
        ]);
        expectEndings(replies, endings);
        await expectOne(bench, subject);
      }
    },
  },
  {
    name: "concurrency/delete-against-delete",
    promise: "many Deletes of one key at once remove it once; the others get BUSY or NOT_FOUND",
    checks: ["rule:one-at-a-time", "rule:deletion", "error:busy"],
    needs: [{ kind: "capability", name: "DELETE" }],
    fix: "hold the key in Delete as in Ensure; what is gone is NOT_FOUND, not a failure",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("delete-delete");
      await subject.converge();
      const mark = bench.hasFaults ? await bench.faults.mark() : 0;
      const calls = Array.from({ length: callersCount }, () => subject.delete());
      const replies = await Promise.all(calls);
      expectEndings(replies, ["BUSY", "NOT_FOUND"]);
      const isAny = replies.some(({ kind }) => kind === "answer");
      expect(isAny, "one of them to remove it", () => replies.map(describeReply).join("; "));
      await subject.remove();
      if (!bench.hasFaults) return;
      const requests = await bench.faults.requestsSince(mark);
      const count = requests.filter(({ change }) => change === "deleted").length;
      expect(count === 1, "one removal at the vendor", () => `${count}`);
    },
  },
  {
    name: "concurrency/ensure-against-release",
    promise: "Ensure and Release of one key at once end with one instance that carries the key",
    checks: ["rule:one-at-a-time", "rpc:release"],
    needs: [
      { kind: "capability", name: "RELEASE" },
      { kind: "edit", name: "remove" },
    ],
    fix: "Ensure, Delete and Release of one key share one lock",
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("ensure-release");
      const ids = new Set<string>();
      for (let round = 0; round < roundsCount; round += 1) {
        ids.add((await subject.converge()).providerId);
        const replies = await Promise.all([
          subject.release(),
          subject.ensure(),
          subject.release(),
          subject.ensure(),
        ]);
        expectEndings(replies, endings);
        ids.add((await subject.converge()).providerId);
        await expectOne(bench, subject);
      }
      // What was released is nobody's now, and would stay.
      const kept = await bench.faults.instancesWith(subject.keyStamp);
      const left = (await bench.faults.instances()).filter(
        ({ id }) => ids.has(id) && !kept.some((one) => one.id === id),
      );
      for (const { id } of left) await bench.faults.edit({ edit: "remove", id });
    },
  },
  {
    name: "concurrency/a-change-in-flight-holds-its-key",
    promise:
      "while a create is at the vendor, Ensure, Delete and Release of its key are ABORTED (BUSY); looks and other keys go on",
    checks: ["rule:one-at-a-time", "error:busy"],
    needs: [{ kind: "vendor-faults" }],
    fix: "hold the key until the vendor has answered, and refuse the second caller at once",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("held");
      const other = bench.subject("not-held");
      const mark = await bench.faults.mark();
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: heldMsOf(bench) });
      const flight = { isOver: false };
      const first = subject.ensure().finally(() => {
        flight.isOver = true;
      });
      await untilAsked(bench, mark);
      const busy = { reasons: ["BUSY"], outcomes: ["NOT_APPLIED"], hasRetry: true };
      refused(await subject.ensure(), busy);
      if (bench.hasCapability("DELETE")) refused(await subject.delete(), busy);
      if (bench.hasCapability("RELEASE")) refused(await subject.release(), busy);
      const look = await subject.describe();
      const isLook = look.kind === "answer" || look.failure.reason === "NOT_FOUND";
      expect(isLook, "Describe to go on", () => describeReply(look));
      await other.made();
      expect(!flight.isOver, "another key to be served meanwhile", () => "it waited for the first");
      await subject.answered(first, "the first Ensure to succeed");
    },
  },
];

/** No longer than the adapter waits for a change at the vendor. */
function heldMsOf({ settling }: Bench): number {
  return Math.min(heldMs, Math.floor(settling.mutationDeadlineMs * 0.7));
}

/** Its requests reach the vendor, or a second has passed: some create without a look. */
async function untilAsked(bench: Bench, mark: number): Promise<void> {
  const endMs = Date.now() + 1_000;
  while ((await bench.faults.requestsSince(mark)).length === 0 && Date.now() < endMs) {
    await systemClock.sleep(20);
  }
}
