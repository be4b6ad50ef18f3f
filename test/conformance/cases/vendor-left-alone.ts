/** What asks no vendor at all, and where no request ever goes. */
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { isMutating, send, servedRpcs } from "../core/request-fields.ts";
import { describeReply } from "../core/wire-client.ts";

/** Of the link itself, private, and private in the newer protocol, plainly and wrapped. */
const addresses = ["169.254.169.254", "10.255.255.1", "[fd00::1]", "[::ffff:169.254.169.254]"];

export const vendorLeftAloneCases: readonly ConformanceCase[] = [
  {
    name: "info/never-asks-the-vendor",
    promise: "GetProviderInfo sends nothing to the vendor, and answers while the vendor is silent",
    checks: ["rpc:info"],
    needs: [{ kind: "effect", name: "hang" }],
    fix: "answer GetProviderInfo from constants",
    run: async (bench) => {
      await bench.faults.arm({ operation: "any", effect: "hang", times: 10_000 });
      const mark = await bench.faults.mark();
      const call = { deadlineMs: 2_000 };
      const reply = await bench.client.call(ProviderAPI.method.getProviderInfo, {}, call);
      expect(reply.kind === "answer", "an answer", () => describeReply(reply));
      const asked = (await bench.faults.requestsSince(mark)).length;
      expect(asked === 0, "no request to the vendor", () => `${asked} came`);
    },
  },
  {
    name: "requests/endpoints-are-no-addresses",
    promise: "an endpoint that is a private or link-local address is INVALID_ARGUMENT in each RPC",
    checks: ["rule:endpoints", "error:bad-value"],
    needs: [],
    fix: "compare the endpoint's host with the account's list before you connect anywhere; metadata services live at such addresses",
    run: async (bench) => {
      const subject = bench.unmade("address");
      for (const address of addresses) {
        for (const rpc of servedRpcs(bench)) {
          const target = { ...subject.target, endpoint: `https://${address}` };
          refused(await send({ bench, rpc, subject }, { target }), {
            reasons: ["ENDPOINT_NOT_ALLOWED", "INVALID_FIELD"],
            fields: ["endpoint"],
            ...(isMutating(rpc) ? { outcomes: ["NOT_APPLIED"] } : {}),
          });
        }
      }
    },
  },
];
