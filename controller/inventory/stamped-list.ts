/** All instances of one owner at one place, page by page, as an adapter lists them. */
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ListRequestSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import type { StampedInstance } from "./claims.ts";

export interface ListedPlace {
  readonly endpoint: string;
  readonly region: string;
  readonly account: string;
}

const pageSize = 1_000;
const pagesMax = 1_000;
const deadlineMs = 30_000;

/** @throws ProviderError */
export async function listStamped(
  client: Pick<ProviderClient, "list">,
  { endpoint, region, account }: ListedPlace,
  { ownerCluster, signal }: { readonly ownerCluster: string; readonly signal?: AbortSignal },
): Promise<readonly StampedInstance[]> {
  const found: StampedInstance[] = [];
  let pageToken = "";
  for (let page = 0; page < pagesMax; page += 1) {
    const target = { endpoint, region, account };
    const request = create(ListRequestSchema, { target, ownerCluster, pageSize, pageToken });
    const answer = await client.list(request, {
      deadlineMs,
      ...(signal === undefined ? {} : { signal }),
    });
    for (const instance of answer.instances) {
      const { createdAt, owner } = instance;
      found.push({
        realm: instance.realm === "" ? answer.realm : instance.realm,
        providerID: instance.providerId,
        stamp: instance.stamp,
        key: instance.instanceKey,
        uid: owner?.uid ?? "",
        createdAtMs: createdAt === undefined ? undefined : timestampMs(createdAt),
      });
    }
    pageToken = answer.nextPageToken;
    if (pageToken === "") return found;
  }
  throw new Error(`the list at ${endpoint} has more than ${pagesMax} pages`);
}
