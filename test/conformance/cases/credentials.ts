/** Credentials: wrong, missing, too weak, rotated; and what they never become. */
import { rename, writeFile } from "node:fs/promises";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { Unmet, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { send, servedInstanceRpcs } from "../core/request-fields.ts";
import { shared } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";

/** A changed file has to be heeded within this; a mounted Secret takes longer to change. */
const rotationMsMax = 15_000;
const stepMs = 250;

const badCredential = { reasons: ["BAD_CREDENTIAL"] };

async function refusedAll(
  bench: Bench,
  subject: Subject,
  reasons: readonly string[],
): Promise<void> {
  for (const rpc of servedInstanceRpcs(bench)) {
    refused(await send({ bench, rpc, subject }, {}), { reasons });
  }
}

async function within(look: () => Promise<unknown>): Promise<void> {
  const endMs = Date.now() + rotationMsMax;
  for (;;) {
    try {
      await look();
      return;
    } catch (error) {
      if (!(error instanceof Unmet) || Date.now() > endMs) throw error;
      await systemClock.sleep(stepMs);
    }
  }
}

/** In one piece, as a mounted Secret changes. */
async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

export const credentialCases: readonly ConformanceCase[] = [
  {
    name: "credentials/refused-is-unauthenticated",
    promise: "a credential that the vendor refuses is UNAUTHENTICATED in each RPC, never NOT_FOUND",
    checks: ["error:credential", "error:absent"],
    needs: [{ kind: "switch", name: "credential" }],
    fix: "401 is BAD_CREDENTIAL in each call, whatever was asked",
    run: async (bench) => {
      const { subject } = await shared(bench);
      await bench.faults.turn({ credential: "wrong" });
      await refusedAll(bench, subject, ["BAD_CREDENTIAL"]);
      await bench.faults.turn({ credential: "good" });
      await subject.answered(subject.describe(), "OK with a good credential");
    },
  },
  {
    name: "credentials/too-weak-is-permission-denied",
    promise: "a credential without the right is PERMISSION_DENIED in each RPC, never NOT_FOUND",
    checks: ["error:credential", "error:absent"],
    needs: [{ kind: "switch", name: "credential" }],
    fix: "403 is MISSING_SCOPE in each call: what may not be seen is not absent",
    run: async (bench) => {
      const { subject } = await shared(bench);
      await bench.faults.turn({ credential: "scopeless" });
      await refusedAll(bench, subject, ["MISSING_SCOPE"]);
      await bench.faults.turn({ credential: "good" });
      await subject.answered(subject.describe(), "OK with a good credential");
    },
  },
  {
    name: "credentials/refusals-never-open-the-circuit",
    promise: "however many calls the vendor refuses for their credential, the circuit stays closed",
    checks: ["error:circuit-open", "error:credential"],
    needs: [{ kind: "switch", name: "credential" }],
    fix: "count only the vendor's own failures for the breaker, never what the caller did wrong",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      await bench.faults.turn({ credential: "wrong" });
      for (let count = 0; count < 40; count += 1) refused(await subject.describe(), badCredential);
      await bench.faults.turn({ credential: "good" });
      await subject.answered(subject.describe(), "OK at once with a good credential");
    },
  },
  {
    name: "credentials/missing-is-unauthenticated",
    promise: "an account whose credential is missing is UNAUTHENTICATED, and nothing is sent",
    checks: ["error:credential", "list:outcome"],
    needs: [{ kind: "parameter", name: "withoutCredential" }],
    fix: "answer BAD_CREDENTIAL (NOT_APPLIED) when the account's credential file cannot be used",
    run: async (bench) => {
      const target = bench.parameters.withoutCredential;
      if (target === undefined) return;
      const subject = bench.unmade("without-credential", { target });
      refused(await subject.describe(), badCredential);
      refused(await subject.ensure(), { ...badCredential, outcomes: ["NOT_APPLIED"] });
      if (!bench.hasCapability("DELETE")) return;
      refused(await subject.delete(), { ...badCredential, outcomes: ["NOT_APPLIED"] });
    },
  },
  {
    name: "credentials/rotate-without-a-restart",
    promise: "a credential file that changes is used from then on, without a restart, both ways",
    checks: ["rule:credentials", "error:credential"],
    needs: [{ kind: "parameter", name: "credential" }],
    fix: "read the file again when it changes; it is replaced by a rename, as a mounted Secret is",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { credential } = bench.parameters;
      if (credential === undefined) return;
      const { file, good, wrong } = credential;
      const { subject } = await shared(bench);
      try {
        await replaceFile(file, wrong);
        await within(async () => refused(await subject.describe(), badCredential));
      } finally {
        await replaceFile(file, good);
      }
      await within(async () => {
        const reply = await subject.describe();
        if (reply.kind === "failure") unmet("OK with the good credential again", "it is refused");
      });
    },
  },
];
