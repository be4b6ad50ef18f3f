/** Many calls at once on one key and on many, round after round; what must hold whoever wins. */
import assert from "node:assert/strict";

import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { wordsOf } from "./vendor-front.ts";
import type { Reply, VendorFront } from "./vendor-front.ts";

const callersCount = 20;
const keysCount = 200;
const triesMax = 400;

/** Twenty Ensures at once on a key that is not there: one makes it, the others find it held or made. */
export async function oneKeyRound(front: VendorFront, key: string): Promise<void> {
  const replies = await Promise.all(Array.from({ length: callersCount }, () => front.ensure(key)));
  const made = replies.filter((reply) => changeIn(reply) === Change.CREATED);
  assert.equal(made.length, 1, allWords(replies));
  const ids = new Set(replies.flatMap(idIn));
  assert.equal(ids.size, 1, "all answers name one instance");
  for (const reply of replies) {
    if (reply.kind === "failure") assert.equal(wordsOf(reply), "ABORTED BUSY NOT_APPLIED");
    else if (changeIn(reply) !== Change.CREATED) assert.equal(changeIn(reply), Change.NONE);
  }
  assert.equal((await front.ids()).length, 1);
  await removed(front, key);
}

/**
 * Two hundred Ensures at once on as many keys make as many instances, as many Deletes none. An
 * adapter has no more than a hundred requests of one account at its vendor: who waits too long for
 * room is told so, has changed nothing, and asks again, as the controller's queue would.
 */
export async function manyKeysRound(front: VendorFront, name: string): Promise<void> {
  const keys = Array.from({ length: keysCount }, (_, index) => `${name}-${index}`);
  const made = await Promise.all(keys.map((key) => served(() => front.ensure(key))));
  assert.deepEqual(
    countBy(made, ({ change }) => change),
    new Map([[Change.CREATED, keysCount]]),
  );
  const ids = made.map(({ instance }) => instance?.providerId);
  assert.equal(new Set(ids).size, keysCount);
  assert.equal((await front.ids()).length, keysCount);
  const again = await Promise.all(keys.map((key) => served(() => front.ensure(key))));
  assert.deepEqual(
    countBy(again, ({ change }) => change),
    new Map([[Change.NONE, keysCount]]),
  );
  assert.deepEqual(
    again.map(({ instance }) => instance?.providerId),
    ids,
  );
  await Promise.all(keys.map((key) => served(() => front.delete(key))));
  assert.deepEqual(await front.ids(), []);
}

/** Asks until it is answered; the only refusal may be that nothing was done for want of room. */
async function served<T>(call: () => Promise<Reply<T>>): Promise<T> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const reply = await call();
    if (reply.kind === "answer") return reply.answer;
    assert.equal(wordsOf(reply), "ABORTED BUSY NOT_APPLIED", reply.failure.message);
    assert.ok((reply.failure.facts.retryAfterMs ?? 0) > 0, "it says when to ask again");
  }
  return assert.fail(`still refused after ${triesMax} calls`);
}

function countBy<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, number> {
  const groups = Map.groupBy(all, keyOf);
  return new Map([...groups].map(([key, { length }]) => [key, length]));
}

const endings = {
  ensure: ["OK", "ABORTED BUSY NOT_APPLIED", "ABORTED IN_DOUBT NOT_APPLIED"],
  delete: [
    "OK",
    "ABORTED BUSY NOT_APPLIED",
    "ABORTED IN_DOUBT NOT_APPLIED",
    "NOT_FOUND NOT_FOUND NOT_APPLIED",
  ],
} as const;

/**
 * Ensure against Delete on one key, in an order that changes from round to round, on a key that is
 * there in every second round. Afterwards one more Ensure leaves one instance, one more Delete none.
 */
export async function againstRound(front: VendorFront, key: string, round: number): Promise<void> {
  if (round % 2 === 0) await made(front, key);
  const order = Array.from({ length: 6 }, (_, index) => ((round >> (index % 4)) + index) % 2 === 0);
  const replies = await Promise.all(
    order.map(async (isEnsure) => {
      const reply: Reply<unknown> = await (isEnsure ? front.ensure(key) : front.delete(key));
      const words = wordsOf(reply);
      const allowed: readonly string[] = isEnsure ? endings.ensure : endings.delete;
      assert.ok(allowed.includes(words), `${isEnsure ? "Ensure" : "Delete"}: ${words}`);
      return words;
    }),
  );
  assert.ok(replies.includes("OK") || replies.includes("NOT_FOUND NOT_FOUND NOT_APPLIED"));
  assert.ok((await front.ids()).length <= 1, "never two");
  await made(front, key);
  assert.equal((await front.ids()).length, 1);
  await removed(front, key);
}

/** Ensures until it is there; refusals may only be those of a held key. */
async function made(front: VendorFront, key: string): Promise<void> {
  await repeated(endings.ensure, "OK", () => front.ensure(key));
}

/** Deletes until the vendor attests that it is gone. */
async function removed(front: VendorFront, key: string): Promise<void> {
  const last = "NOT_FOUND NOT_FOUND NOT_APPLIED";
  await repeated(endings.delete, last, () => front.delete(key));
  assert.deepEqual(await front.ids(), []);
}

async function repeated(
  allowed: readonly string[],
  last: string,
  call: () => Promise<Reply<unknown>>,
): Promise<void> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const words = wordsOf(await call());
    if (words === last) return;
    assert.ok(allowed.includes(words), words);
  }
  assert.fail(`not ${last} after ${triesMax} calls`);
}

function changeIn(reply: Reply<EnsureResponse>): Change | undefined {
  return reply.kind === "answer" ? reply.answer.change : undefined;
}

function idIn(reply: Reply<EnsureResponse>): readonly string[] {
  return reply.kind === "answer" ? [reply.answer.instance?.providerId ?? "no id"] : [];
}

function allWords(replies: readonly Reply<unknown>[]): string {
  const counts = Map.groupBy(replies, wordsOf);
  return [...counts].map(([words, { length }]) => `${length} ${words}`).join("; ");
}
