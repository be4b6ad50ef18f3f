/** What asks no vendor at all. */
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { describeReply } from "../core/wire-client.ts";

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
];
