/**
 * Ensure: look first, then at most one mutation, then look again. Identity is the key; a recorded id
 * is evidence. Nothing of another cluster's is ever written to unless a take-over names its owner.
 */
import { create } from "@bufbuild/protobuf";

import { Change, EnsureResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { FieldChange, FoundInstance } from "./adapter.ts";
import { adoptable } from "./adopt.ts";
import { createInstance, notYetVisible } from "./create-instance.ts";
import { differences } from "./diff.ts";
import { instanceMessage, pollAfterField } from "./instance-message.ts";
import { locate } from "./locate.ts";
import {
  isVouchedFor,
  ownedByAnother,
  requireChangeable,
  requireStillOurs,
} from "./ownership-checks.ts";
import type { EnsureQuestion } from "./request-checks.ts";
import type { Ensured, Run } from "./run.ts";
import { ownershipOf } from "./stamp.ts";

/** Runs with the key held. Errors carry their outcome. */
export async function ensure(run: Run, question: EnsureQuestion): Promise<EnsureResponse> {
  if (question.isValidateOnly) return validate(run, question);
  run.site.requireInTime();
  const found = await locateOrAdopt(run, question);
  return respond(run, question, await ensured(run, question, found));
}

async function ensured(
  run: Run,
  question: EnsureQuestion,
  found: FoundInstance | undefined,
): Promise<Ensured> {
  if (found === undefined) return createInstance(run, question);
  const { adopt, wanted } = question;
  if (adopt === undefined || !isAdoption(found, question)) {
    return correct(run, question, { found, isAdopting: false });
  }
  // Another key may want it as well: from the last look at its stamp on, one at a time.
  return run.flights.alone(JSON.stringify([run.realm, "adopt", found.id]), async () => {
    const again = await adoptable(run, adopt, wanted.stamp);
    return correct(run, question, { found: again, isAdopting: isAdoption(again, question) });
  });
}

/** What Ensure would find and refuse, without changing anything. */
async function validate(run: Run, question: EnsureQuestion): Promise<EnsureResponse> {
  const found = await locateOrAdopt(run, question);
  if (found === undefined) {
    const { wanted } = question;
    const planned: FoundInstance = { ...wanted, id: "", ...notYetVisible, createdAtMs: 0 };
    return respond(run, question, { found: planned, change: Change.NONE });
  }
  requireChangeable(run.adapter, found, changesOf(run, question, found));
  return respond(run, question, { found, change: Change.NONE });
}

/** The instance to work on; it is ours, or it may be made ours. `undefined`: proven absent. */
async function locateOrAdopt(
  run: Run,
  question: EnsureQuestion,
): Promise<FoundInstance | undefined> {
  const { adapter, site, lists } = run;
  const { adopt, recorded } = question;
  const { stamp } = question.wanted;
  const rememberedId = run.flights.rememberedId(run.flightKey);
  const asked = { stamp, recordedId: recorded.providerId, rememberedId };
  const found = await site.read((call) => locate(adapter, call, asked, lists));
  const isOurs = found !== undefined && isVouchedFor(run, found, { stamp, recorded });
  if (isOurs) return found;
  const isAimedAt = found === undefined || found.id === adopt?.providerId;
  if (adopt !== undefined && isAimedAt) return adoptable(run, adopt, stamp);
  if (found !== undefined) throw ownedByAnother(run, found);
  return undefined;
}

function isAdoption(found: FoundInstance, question: EnsureQuestion): boolean {
  if (found.id !== question.adopt?.providerId) return false;
  if (found.id === question.recorded.providerId) return false;
  const ownership = ownershipOf(found, question.wanted.stamp);
  return ownership === "foreign" || ownership === "unowned";
}

function changesOf(
  run: Run,
  question: EnsureQuestion,
  found: FoundInstance,
): readonly FieldChange[] {
  const { info } = run.adapter;
  return differences(question.wanted, found, {
    isQuotaSettable: info.capabilities.includes("QUOTA_SETTABLE"),
    immutableFields: info.immutableFields,
  });
}

/** Makes an existing instance as wanted: nothing, a new stamp, or one update. */
async function correct(
  run: Run,
  question: EnsureQuestion,
  { found, isAdopting }: { readonly found: FoundInstance; readonly isAdopting: boolean },
): Promise<Ensured> {
  const { adapter, site } = run;
  const { wanted } = question;
  if (found.state === "DELETING") {
    throw new ProviderError("BUSY", `instance ${found.id} is being deleted at the vendor`, {
      retryAfterMs: run.pollAfterMs.deleting,
      preconditions: [{ type: "STATE", subject: "DELETING", description: "being deleted" }],
    });
  }
  const changes = changesOf(run, question, found);
  const isStamped = ownershipOf(found, wanted.stamp) === "ours";
  if (isStamped && changes.length === 0) return { found, change: Change.NONE };
  requireChangeable(adapter, found, changes);
  const { update } = adapter;
  if (update === undefined) {
    // The stamp alone is out of date and this vendor cannot change it: use is not affected.
    return { found, change: Change.NONE };
  }
  await run.mutate((call) => update.call(adapter, call, found, wanted, changes), found.id);
  const again = await run.after(found.id, () => site.read((call) => adapter.read(call, found.id)));
  if (again !== undefined) requireStillOurs(run, found, again, wanted.stamp);
  const corrected = changes.length > 0 ? Change.UPDATED : Change.RESTAMPED;
  return { found: again ?? found, change: isAdopting ? Change.ADOPTED : corrected };
}

function respond(run: Run, question: EnsureQuestion, { found, change }: Ensured): EnsureResponse {
  return create(EnsureResponseSchema, {
    instance: instanceMessage(found, {
      realm: run.realm,
      nowMs: run.clock.now(),
      asked: question.wanted.stamp,
      drift: found.id === "" ? [] : changesOf(run, question, found),
    }),
    change,
    ...pollAfterField(run.pollAfterMs.byState[found.state]),
  });
}
