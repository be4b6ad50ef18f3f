/** Whose an instance is, where lists lag, lose pages, or show two of one key. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectSoundDetails } from "../core/expectations.ts";
import { listAll, listPage } from "../core/listing.ts";
import { describeFailure } from "../core/rpc-failure.ts";
import { changeName } from "../core/wire-words.ts";
import { describeReply } from "../core/wire-client.ts";
import { askedSince, expectCount } from "../core/vendor-changes.ts";

const dayMs = 86_400_000;

/** A process that made an instance may remember it; a fresh one has to find it. */
async function forget(bench: Bench): Promise<void> {
  if (!bench.hasLauncher) return;
  await bench.launcher.restart();
  bench.reconnect();
}

/** The vendor has been asked for a list, or will not be. */
async function untilListed(bench: Bench, mark: number): Promise<void> {
  const endMs = Date.now() + 1_000;
  while (Date.now() < endMs && (await askedSince(bench, mark, "list")) === 0) {
    await systemClock.sleep(20);
  }
}

/** Whatever befalls the second page: a list of which one page is missing was not read. */
function halfListCase(effect: "server-error" | "cut" | "html"): ConformanceCase {
  return {
    name: `identity/half-a-list-proves-nothing${effect === "server-error" ? "" : `-${effect}`}`,
    promise: `a list that breaks off in the middle (${effect}) proves no absence, makes no second instance, and is not answered as whole`,
    checks: ["rule:identity", "error:absent", "rpc:list"],
    needs: [
      { kind: "switch", name: "pageSize" },
      { kind: "effect", name: effect },
    ],
    fix: "an error on any page is the error of the whole scan",
    timeoutMs: 60_000,
    run: async (bench) => {
      const names = ["a", "b", "c"].map((letter) => `half-${effect}-${letter}`);
      const subjects = names.map((name) => bench.subject(name));
      for (const subject of subjects) await subject.converge();
      for (const subject of subjects) {
        await bench.faults.turn({ pageSize: 2 });
        await bench.faults.arm({ operation: "list", effect, skip: 1, times: 10_000 });
        const replies = [await subject.describe(), await subject.ensure()];
        await bench.faults.reset();
        for (const reply of replies) {
          if (reply.kind === "answer") continue;
          const expected = "the instance, or an error that is not NOT_FOUND";
          expectSoundDetails(reply.failure, expected);
          const came = (): string => describeFailure(reply.failure);
          expect(reply.failure.code !== "NOT_FOUND", expected, came);
        }
        await expectCount(bench, subject.keyStamp, 1);
      }
      if (!bench.hasCapability("LIST_BY_OWNER")) return;
      await bench.faults.turn({ pageSize: 2 });
      await bench.faults.arm({ operation: "list", effect, skip: 1, times: 10_000 });
      await expectNoHalfList(bench);
    },
  };
}

/** Page after page, until the end or a failure; an end has to have shown all. */
async function expectNoHalfList(bench: Bench): Promise<void> {
  let pageToken = "";
  for (let page = 0; page < pagesMax; page += 1) {
    const reply = await listPage(bench, { ownerCluster: bench.cluster, pageToken });
    if (reply.kind === "failure") return;
    pageToken = reply.answer.nextPageToken;
    if (pageToken === "") unmet("List to fail, since the vendor's pages do", "it came to its end");
  }
}

const pagesMax = 100;

export const identityAtVendorCases: readonly ConformanceCase[] = [
  {
    name: "identity/one-lagging-scan-is-no-proof",
    promise: "absence in one list alone is no absence: two equal whole scans have to agree",
    checks: ["rule:identity", "error:absent"],
    needs: [{ kind: "switch", name: "listLagMs" }],
    fix: "do not declare lists_are_consistent where lists lag; scan the whole list twice, and believe in absence only when both scans are equal",
    run: async (bench) => {
      const subject = bench.subject("one-scan");
      await subject.converge();
      await forget(bench);
      // The first scan sees the world of before; the second is held until the world is as it is.
      await bench.faults.turn({ listLagMs: dayMs });
      await bench.faults.arm({ operation: "list", effect: "slow", delayMs: 1_500, skip: 1 });
      const mark = await bench.faults.mark();
      const look = subject.describe();
      await untilListed(bench, mark);
      await bench.faults.turn({ listLagMs: 0 });
      const { instance } = await subject.answered(look, "the instance that is there");
      expect(instance?.stamp === subject.stamp, subject.stamp, () => `${instance?.stamp}`);
    },
  },
  {
    name: "identity/lagging-lists-make-no-second",
    promise:
      "while lists do not show a fresh instance, Ensure without may_create makes no other: it finds it, or is IN_DOUBT",
    checks: ["rule:identity", "error:in-doubt"],
    needs: [{ kind: "switch", name: "listLagMs" }, { kind: "own-process" }],
    fix: "without may_create answer ABORTED (IN_DOUBT) when the instance is not to be found",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("lagging");
      await subject.made();
      await forget(bench);
      await bench.faults.turn({ listLagMs: dayMs });
      const reply = await subject.ensure({ mayCreate: false });
      const isDoubt = reply.kind === "failure" && reply.failure.reason === "IN_DOUBT";
      const isFound = reply.kind === "answer";
      expect(isDoubt || isFound, "the instance, or IN_DOUBT", () => describeReply(reply));
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
  ...(["server-error", "cut", "html"] as const).map(halfListCase),
  {
    name: "identity/every-page-is-read",
    promise: "List shows each instance once, however small the vendor's pages are",
    checks: ["rpc:list", "rule:bounds"],
    needs: [
      { kind: "capability", name: "LIST_BY_OWNER" },
      { kind: "switch", name: "pageSize" },
    ],
    fix: "follow the vendor's pages to the last one",
    run: async (bench) => {
      const names = ["page-a", "page-b", "page-c", "page-d", "page-e"];
      const subjects = names.map((name) => bench.subject(name));
      for (const subject of subjects) await subject.converge();
      await bench.faults.turn({ pageSize: 2 });
      const listed = (await listAll(bench, { ownerCluster: bench.cluster })).map(
        ({ stamp }) => stamp,
      );
      for (const { stamp, key } of subjects) {
        const count = listed.filter((one) => one === stamp).length;
        expect(count === 1, `${key} once`, () => `it is listed ${count} times`);
      }
    },
  },
  {
    name: "identity/the-older-of-two-is-ours",
    promise: "of two instances with our key the older is ours, and Ensure deletes neither",
    checks: ["rule:identity"],
    needs: [{ kind: "edit", name: "twin" }],
    fix: "choose by created_at, then by id; delete only what this very call has made",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("twins");
      const { providerId } = await subject.converge();
      // Clocks of vendors count in seconds.
      await systemClock.sleep(1_100);
      await bench.faults.edit({ edit: "twin", id: providerId });
      await forget(bench);
      const again = await subject.made();
      const expected = `the older one, ${providerId}`;
      expect(again.providerId === providerId, expected, () => again.providerId);
      await expectCount(bench, subject.keyStamp, 2);
    },
  },
  {
    name: "identity/a-lost-stamp-is-written-anew",
    promise: "an instance at its recorded id that lost its stamp is restamped, not made again",
    checks: ["rule:identity", "list:change"],
    needs: [{ kind: "edit", name: "unstamp" }],
    fix: "read by recorded id first; when what is there carries no stamp, write it (RESTAMPED)",
    run: async (bench) => {
      const subject = bench.subject("unstamped");
      const { providerId, realm } = await subject.converge();
      await bench.faults.edit({ edit: "unstamp", id: providerId });
      const recorded = { providerId, realm };
      const answer = await subject.answered(
        subject.ensure({ recorded, mayCreate: false }),
        "change RESTAMPED",
      );
      const came = (): string => `${changeName(answer.change)}, ${answer.instance?.providerId}`;
      const isRestamped =
        answer.change === Change.RESTAMPED && answer.instance?.providerId === providerId;
      expect(isRestamped, `RESTAMPED, ${providerId}`, came);
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
  {
    name: "identity/strangers-are-left-alone",
    promise: "instances without our stamp are never changed, listed or removed",
    checks: ["rule:identity", "rpc:list"],
    needs: [{ kind: "edit", name: "stranger" }],
    fix: "count only what carries the stamp of a key as ours",
    run: async (bench) => {
      const [id = unmet("a stranger's id", "the emulator made none")] = await bench.faults.edit({
        edit: "stranger",
        id: "",
      });
      const textOf = async (): Promise<string> =>
        (await bench.faults.instances()).find((one) => one.id === id)?.text ?? "gone";
      const before = await textOf();
      const subject = bench.subject("beside-a-stranger");
      await subject.converge();
      if (bench.hasCapability("DELETE")) await subject.remove();
      if (bench.hasCapability("LIST_BY_OWNER")) {
        const listed = await listAll(bench, {});
        const isListed = listed.some(({ providerId }) => providerId === id);
        expect(!isListed, "the stranger unlisted", () => `${id} is listed`);
      }
      const after = await textOf();
      expect(after === before, before, () => after);
      await bench.faults.edit({ edit: "remove", id });
    },
  },
];
