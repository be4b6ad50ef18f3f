/** What is looked at last: nothing leaked, the process stops in good order, TLS keeps strangers out. */
import { get } from "node:http";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { shared } from "../core/shared-subjects.ts";
import { describeReply, WireClient } from "../core/wire-client.ts";

/** Longer drains are the operator's wish; the suite does not wait for them. */
const drainMsMax = 30_000;

function secretsIn(bench: Bench, text: string): number {
  return bench.parameters.secrets.filter((secret) => text.includes(secret)).length;
}

function textAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { timeout: 5_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > 16 << 20) request.destroy(new Error("metrics without an end"));
      });
      response.on("end", () => resolve(text));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 5000 ms")));
    request.on("error", reject);
  });
}

export const lastCases: readonly ConformanceCase[] = [
  {
    name: "secrets/in-no-answer",
    promise: "no credential has appeared in any answer, error, detail or trailer of the whole run",
    checks: ["rule:credentials"],
    needs: [
      {
        kind: "trait",
        what: "secrets in the parameters file",
        isSo: ({ parameters }) => parameters.secrets.length > 0,
      },
    ],
    fix: "take credentials out of the vendor's words before they go anywhere: vendors repeat what was sent",
    run: async (bench) => {
      const seen = bench.client.seenSecrets.map(({ method, where }) => `${where} of ${method}`);
      expect(seen.length === 0, "no credential anywhere", () => [...new Set(seen)].join("; "));
    },
  },
  {
    name: "secrets/in-no-log",
    promise: "no credential has appeared in what the process wrote",
    checks: ["rule:credentials"],
    needs: [
      { kind: "own-process" },
      {
        kind: "trait",
        what: "secrets in the parameters file",
        isSo: ({ parameters }) => parameters.secrets.length > 0,
      },
    ],
    fix: "redact at the log's door",
    run: async (bench) => {
      const count = secretsIn(bench, bench.launcher.output());
      expect(count === 0, "no credential in the log", () => `${count} of them are there`);
    },
  },
  {
    name: "secrets/in-no-metric",
    promise: "no credential has appeared in a metric or a label",
    checks: ["rule:credentials"],
    needs: [
      {
        kind: "trait",
        what: "metrics in the parameters file",
        isSo: ({ parameters }) => parameters.metrics !== undefined,
      },
    ],
    fix: "labels are for names that you chose, never for what came in",
    run: async (bench) => {
      const count = secretsIn(bench, await textAt(bench.parameters.metrics ?? ""));
      expect(count === 0, "no credential in the metrics", () => `${count} of them are there`);
    },
  },
  {
    name: "tls/strangers-are-kept-out",
    promise: "with TLS, a client without a certificate of the right authority is not served",
    checks: ["rule:tls"],
    needs: [
      {
        kind: "trait",
        what: "a run over TLS with a client certificate",
        isSo: ({ wire }) => wire.tls?.cert !== undefined,
      },
    ],
    fix: "ask for client certificates, and verify them",
    run: async (bench) => {
      const { subject } = await shared(bench);
      const ca = bench.wire.tls?.ca ?? unmet("TLS", "there is none");
      const { address, secrets } = bench.wire;
      for (const own of [{ tls: { ca } }, {}]) {
        const stranger = new WireClient({ address, secrets, ...own });
        try {
          const reply = await subject.through(stranger).describe();
          expect(reply.kind === "failure", "no answer for a stranger", () => describeReply(reply));
        } finally {
          stranger.close();
        }
      }
      await subject.answered(subject.describe(), "OK for who is known");
    },
  },
  {
    name: "drain/finishes-what-is-in-flight",
    promise:
      "SIGTERM with a create at the vendor: that one is answered, new calls are refused, exit code 0",
    checks: ["rule:drain", "error:shutting-down", "list:outcome"],
    needs: [{ kind: "own-process" }, { kind: "vendor-faults" }],
    fix: "on SIGTERM refuse new calls with SHUTTING_DOWN, wait for those in flight, then exit 0",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("drained");
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: 2_500 });
      const inFlight = subject.ensure();
      await systemClock.sleep(700);
      const exit = bench.launcher.terminate(drainMsMax);
      await systemClock.sleep(500);
      const late = await bench.subject("too-late-for-it").ensure({}, { deadlineMs: 1_000 });
      const { code, signal } = await exit;
      const reply = await inFlight;
      await bench.launcher.start();
      bench.reconnect();
      await subject.answered(Promise.resolve(reply), "the create in flight to be answered");
      expect(late.kind === "failure", "a refusal of the late call", () => describeReply(late));
      if (late.kind === "failure" && late.failure.reason !== undefined) {
        refused(late, { reasons: ["SHUTTING_DOWN"], outcomes: ["NOT_APPLIED"] });
      }
      expect(code === 0, "exit code 0", () => `code ${code}, signal ${signal}`);
    },
  },
  {
    name: "drain/idle-process-exits-with-0",
    promise: "SIGTERM to a process with nothing to do ends it at once, with exit code 0",
    checks: ["rule:drain"],
    needs: [{ kind: "own-process" }],
    fix: "close servers, timers and connections; leave nothing open",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { code, signal } = await bench.launcher.terminate(drainMsMax);
      await bench.launcher.start();
      bench.reconnect();
      expect(code === 0, "exit code 0", () => `code ${code}, signal ${signal}`);
    },
  },
];
