/** Deletes one orphan at its vendor, after a last look that it still is one. */
import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { DeleteRequestSchema, RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { systemClock } from "../../services/process/clock.ts";
import { Claims } from "./claims.ts";
import type { Inventory, Orphan } from "./inventory.ts";

const deadlineMs = 30_000;
const notAfterMs = 20_000;
const waitMsMax = 120_000;
const pollMsDefault = 2_000;

/** What became of it, for people. Throws what the vendor refuses. */
export async function removeOrphan(inventory: Inventory, orphan: Orphan): Promise<string> {
  const { instance, place } = orphan;
  if (instance.key === "") {
    return "left: the vendor's field was too short for its key; delete it at the vendor's console";
  }
  const claim = new Claims(await inventory.objects(), inventory.identity).of(instance);
  if (claim.kind !== "orphan") return `left: object ${claim.object} claims it now`;
  const client = await inventory.client(orphan.class);
  const endMs = Date.now() + waitMsMax;
  for (;;) {
    const request = create(DeleteRequestSchema, {
      instanceKey: instance.key,
      owner: { cluster: inventory.identity.cluster, uid: instance.uid },
      target: { ...place },
      recorded: { providerId: instance.providerID, realm: instance.realm },
      notAfter: timestampFromMs(Date.now() + notAfterMs),
    });
    try {
      const { state, pollAfter } = await client.delete(request, { deadlineMs });
      if (state === RemovalState.DELETED) return "deleted";
      await systemClock.sleep(pollAfter === undefined ? pollMsDefault : durationMs(pollAfter));
    } catch (error) {
      if (error instanceof ProviderError && error.reason === "NOT_FOUND") return "deleted";
      throw error;
    }
    if (Date.now() > endMs) return "the vendor is still removing it";
  }
}
