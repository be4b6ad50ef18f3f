/** Describe: one instance as the vendor shows it, in the contract's words. Read only. */
import { create } from "@bufbuild/protobuf";

import { DescribeResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { DescribeResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { WantedInstance } from "./adapter.ts";
import { differences } from "./diff.ts";
import { instanceMessage } from "./instance-message.ts";
import { locate } from "./locate.ts";
import type { InstanceQuestion } from "./request-checks.ts";
import type { Run } from "./run.ts";
import { makeStamp } from "./stamp.ts";

/** NOT_FOUND, with the realm, only when absence is proven. @param wanted to name drifted fields */
export async function describe(
  run: Run,
  question: InstanceQuestion,
  wanted: Omit<WantedInstance, "stamp"> | undefined,
): Promise<DescribeResponse> {
  const { adapter, realm } = run;
  const { key, owner, recorded } = question;
  const stamp = makeStamp(key, owner, "");
  const rememberedId = run.flights.rememberedId(run.flightKey);
  const asked = { stamp, recordedId: recorded.providerId, rememberedId };
  const found = await run.site.read((call) => locate(adapter, call, asked, run.lists));
  if (found === undefined) {
    const message = `the vendor says that it does not exist in ${realm}`;
    throw new ProviderError("NOT_FOUND", message, { resource: key, realm });
  }
  const rules = {
    isQuotaSettable: adapter.info.capabilities.includes("QUOTA_SETTABLE"),
    immutableFields: adapter.info.immutableFields,
  };
  const drift = wanted === undefined ? [] : differences({ ...wanted, stamp }, found, rules);
  const nowMs = run.clock.now();
  const instance = instanceMessage(found, { realm, nowMs, asked: stamp, drift });
  return create(DescribeResponseSchema, { instance });
}
