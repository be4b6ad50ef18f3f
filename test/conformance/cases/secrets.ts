/** Credentials appear nowhere, whatever the vendor repeats. What the whole run has shown is looked at last. */
import { get } from "node:http";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { send, servedRpcs } from "../core/request-fields.ts";
import { admitted } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";

const hasSecrets: Need = {
  kind: "trait",
  what: "secrets in the parameters file",
  isSo: ({ parameters }) => parameters.secrets.length > 0,
};
const textBytesMax = 16 << 20;

function secretsIn(bench: Bench, text: string): number {
  return bench.parameters.secrets.filter((secret) => text.includes(secret)).length;
}

/** Before cases whose processes come and go: what they provoke has to show in logs and metrics. */
export const echoCases: readonly ConformanceCase[] = [
  {
    name: "secrets/repeated-by-the-vendor",
    promise: "a vendor that repeats the credentials in its answer does not make the adapter do so",
    checks: ["rule:credentials"],
    needs: [hasSecrets, { kind: "effect", name: "echo" }],
    fix: "take credentials out of the vendor's words before they go into an error's message or details",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("repeated");
      await subject.converge();
      const seenBefore = bench.client.seenSecrets.length;
      for (const operation of ["any", "create", "update", "delete"] as const) {
        for (const rpc of servedRpcs(bench)) {
          // A release that gets through leaves an instance that nobody removes.
          if (rpc === "release" && operation !== "any") continue;
          await bench.faults.arm({ operation, effect: "echo", times: 10_000 });
          const asked = operation === "create" ? bench.subject("repeated-create") : subject;
          const reply = await admitted(() => send({ bench, rpc, subject: asked }));
          await bench.faults.reset();
          const isRefused = reply.kind === "failure" || operation !== "any";
          expect(isRefused, `${rpc} to fail`, () => describeReply(reply));
          await admitted(() => subject.describe());
        }
      }
      const seen = bench.client.seenSecrets.slice(seenBefore);
      const places = seen.map(({ method, where }) => `${where} of ${method}`);
      expect(seen.length === 0, "no credential anywhere", () => [...new Set(places)].join("; "));
    },
  },
];

export const secretCases: readonly ConformanceCase[] = [
  {
    name: "secrets/in-no-answer",
    promise: "no credential has appeared in any answer, error, detail or trailer of the whole run",
    checks: ["rule:credentials"],
    needs: [hasSecrets],
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
    needs: [{ kind: "own-process" }, hasSecrets],
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
      hasSecrets,
      {
        kind: "trait",
        what: "metrics in the parameters file, at a port that is known",
        isSo: ({ parameters: { metrics }, hasLauncher }) =>
          metrics !== undefined && (hasLauncher || !metrics.includes("{adminPort}")),
      },
    ],
    fix: "labels are for names that you chose, never for what came in",
    run: async (bench) => {
      const { metrics = "" } = bench.parameters;
      const url = bench.hasLauncher ? bench.launcher.fillIn(metrics) : metrics;
      const text = await textAt(url);
      expect(text !== "", "metrics", () => "an empty page");
      const count = secretsIn(bench, text);
      expect(count === 0, "no credential in the metrics", () => `${count} of them are there`);
    },
  },
];

function textAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { timeout: 5_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > textBytesMax) request.destroy(new Error("metrics without an end"));
      });
      response.on("end", () => resolve(text));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 5000 ms")));
    request.on("error", reject);
  });
}
