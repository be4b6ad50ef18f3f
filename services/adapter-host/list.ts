/** List: what carries our stamp, in pages. Read only. */
import { create } from "@bufbuild/protobuf";

import { ListResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ListResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { FoundInstance } from "./adapter.ts";
import { instanceMessage } from "./instance-message.ts";
import { byAge } from "./locate.ts";
import { readPageToken, writePageToken } from "./page-token.ts";
import type { ListPosition } from "./page-token.ts";
import type { CheckedTarget } from "./request-checks.ts";
import type { Run } from "./run.ts";
import { isOwnedByCluster } from "./stamp.ts";

/** What a List asks for, checked. */
export interface ListQuestion extends CheckedTarget {
  /** Absent: every owner's. */
  readonly ownerCluster: string | undefined;
  /** At least 1. */
  readonly pageSize: number;
  readonly pageToken: string;
}

/** So many vendor pages are read for one answer; then a shorter one, with a token, must do. */
const vendorPagesMax = 20;

/** One page, AIP-158: may be short or even empty while there is a next one. */
export async function list(run: Run, question: ListQuestion): Promise<ListResponse> {
  const { adapter, realm } = run;
  const about = JSON.stringify([question.target, realm, question.ownerCluster ?? null]);
  let position: ListPosition | undefined = positionOf(question.pageToken, about);
  const taken: FoundInstance[] = [];
  await run.site.read(async (call) => {
    for (let pages = 0; pages < vendorPagesMax && position !== undefined; pages += 1) {
      const page = await adapter.list(call, position.vendorToken);
      const rest = restOf(page.instances, position, question.ownerCluster);
      const part = rest.slice(0, question.pageSize - taken.length);
      taken.push(...part);
      const last = part.at(-1);
      if (part.length < rest.length && last !== undefined) {
        position = { ...position, after: { createdAtMs: last.createdAtMs, id: last.id } };
        return;
      }
      position = page.nextToken === undefined ? undefined : { vendorToken: page.nextToken };
      if (taken.length >= question.pageSize) return;
    }
  });
  const nowMs = run.clock.now();
  return create(ListResponseSchema, {
    instances: taken.map((found) => instanceMessage(found, { realm, nowMs })),
    nextPageToken: position === undefined ? "" : writePageToken(position, about),
    realm,
  });
}

function positionOf(token: string, about: string): ListPosition {
  const position = token === "" ? {} : readPageToken(token, about);
  if (position !== undefined) return position;
  throw new ProviderError("INVALID_FIELD", "page_token is not one that was given for this list", {
    fields: [{ path: "page_token", description: "was not given for this question" }],
  });
}

/** Of one vendor page: what is asked for and was not given yet, in a fixed order. */
function restOf(
  instances: readonly FoundInstance[],
  { after }: ListPosition,
  ownerCluster: string | undefined,
): readonly FoundInstance[] {
  const asked = instances.filter(
    ({ stamp }) =>
      stamp !== undefined && (ownerCluster === undefined || isOwnedByCluster(stamp, ownerCluster)),
  );
  const rest = asked.filter(
    ({ createdAtMs, id }) =>
      after === undefined ||
      createdAtMs > after.createdAtMs ||
      (createdAtMs === after.createdAtMs && id > after.id),
  );
  return [...rest].sort(byAge);
}
