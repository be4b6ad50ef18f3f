/** Where an adapter connects to: never inside the network it runs in, never where a vendor sends it. */
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { isMutating, send, servedRpcs } from "../core/request-fields.ts";
import { shared } from "../core/shared-subjects.ts";
import { admitted, expectCount, finished, vendorChanges } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";

const [creation] = vendorChanges;

/** Loopback, private, link-local (where clouds keep credentials), and other ways to write them. */
const innerHosts = [
  "127.0.0.1",
  "127.0.0.1:6443",
  "localhost",
  "10.0.0.1",
  "172.16.0.1",
  "192.168.0.1",
  "169.254.169.254",
  "100.64.0.1",
  "0.0.0.0",
  "2130706433",
  "0x7f000001",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[fe80::1]",
  "[fd00::1]",
  "kubernetes.default.svc",
];

export const endpointCases: readonly ConformanceCase[] = [
  {
    name: "endpoints/inner-addresses-are-refused",
    promise:
      "endpoints on loopback, private and link-local addresses are refused in each RPC, however they are written",
    checks: ["rule:endpoints", "error:bad-value"],
    needs: [],
    fix: "allow hosts by name from the account's list; check each address before you connect to it",
    run: async (bench) => {
      const subject = bench.unmade("inner");
      const reasons = ["ENDPOINT_NOT_ALLOWED", "INVALID_FIELD"];
      const hosts = innerHosts.filter((host) => !subject.target.endpoint.endsWith(`//${host}`));
      for (const rpc of servedRpcs(bench)) {
        const outcomes = isMutating(rpc) ? { outcomes: ["NOT_APPLIED"] } : {};
        const replies = await Promise.all(
          hosts.map((host) => {
            const target = { ...subject.target, endpoint: `https://${host}` };
            return send({ bench, rpc, subject }, { target });
          }),
        );
        for (const reply of replies) refused(reply, { reasons, fields: ["endpoint"], ...outcomes });
      }
    },
  },
  {
    name: "endpoints/redirected-looks-are-not-followed",
    promise: "a look that the vendor redirects to another host is a failure, and asks nobody else",
    checks: ["rule:endpoints", "rule:credentials"],
    needs: [{ kind: "effect", name: "redirect" }],
    fix: "never follow redirects: the credential would go where the vendor's answer sends it",
    run: async (bench) => {
      const { subject } = await shared(bench);
      await bench.faults.arm({ operation: "any", effect: "redirect" });
      const mark = await bench.faults.mark();
      const reply = await admitted(() => subject.describe());
      expect(reply.kind === "failure", "a failure", () => describeReply(reply));
      const count = (await bench.faults.requestsSince(mark)).length;
      expect(count === 1, "no request after the one that was redirected", () => `${count} came`);
    },
  },
  {
    name: "endpoints/redirected-creates-are-not-followed",
    promise: "a create that the vendor redirects is sent nowhere else, and is not said to be done",
    checks: ["rule:endpoints", "rule:retries", "list:outcome"],
    needs: [{ kind: "effect", name: "redirect" }],
    fix: "never follow redirects; a create that was answered so has outcome UNKNOWN",
    timeoutMs: 60_000,
    run: async (bench) => {
      if (creation === undefined) return undefined;
      const subject = await creation.prepare(bench, "redirected");
      await bench.faults.arm({ operation: "create", effect: "redirect" });
      const mark = await bench.faults.mark();
      const reply = await admitted(() => creation.send(subject));
      expect(reply.kind === "failure", "a failure", () => describeReply(reply));
      const requests = await bench.faults.requestsSince(mark);
      const at = requests.findIndex(({ operation }) => operation === "create");
      const next = requests.slice(at + 1).filter(({ change }) => change !== "none");
      expect(next.length === 0, "no create after the redirected one", () => `${next.length} came`);
      await expectCount(bench, subject.keyStamp, 0);
      return await finished(bench, creation, subject);
    },
  },
];
