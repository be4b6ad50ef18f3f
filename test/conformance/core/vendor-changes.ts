/**
 * The ways to change something at a vendor, as data: what has to be there first, the call, and how it
 * has to end once all doubt is over. Cases break each of them in the same ways.
 */
import type { Operation } from "../../../services/vendor-emulator/fault-words.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "./bench.ts";
import { expect } from "./case.ts";
import type { Later, Need } from "./case.ts";
import type { Subject } from "./subject.ts";
import type { Reply, WireCall } from "./wire-client.ts";

export interface VendorChange {
  readonly operation: Extract<Operation, "create" | "update" | "delete">;
  /** What an adapter has to offer for it. */
  readonly needs: readonly Need[];
  /** The subject as it has to be before the call. */
  readonly prepare: (bench: Bench, name: string) => Promise<Subject>;
  /** The call that makes the vendor be asked. */
  readonly send: (subject: Subject, call?: WireCall) => Promise<Reply<unknown>>;
  /** True: to ask again is safe while an earlier call may still take effect. */
  readonly isRepeatable: boolean;
  /** Asks again as the controller would, until it is as wanted; then the vendor's truth. */
  readonly finish: (bench: Bench, subject: Subject) => Promise<void>;
}

/** Short, so that doubt ends soon after the call. */
const notAfterRoomMs = 500;

const creation: VendorChange = {
  operation: "create",
  isRepeatable: false,
  needs: [],
  prepare: async (bench, name) => bench.subject(name),
  send: (subject, call) => subject.ensure({ notAfter: subject.notAfter(notAfterRoomMs) }, call),
  finish: async (bench, subject) => {
    await subject.converge();
    await expectCount(bench, subject.keyStamp, 1);
  },
};

const correction: VendorChange = {
  operation: "update",
  isRepeatable: true,
  needs: [
    { kind: "capability", name: "UPDATE" },
    { kind: "parameter", name: "changed" },
  ],
  prepare: async (bench, name) => {
    const before = bench.subject(name);
    await before.converge();
    const { parameters, changed } = bench.parameters;
    const spec = { ...before.spec, parameters: { ...parameters, ...changed } };
    return before.as({ spec });
  },
  send: (subject, call) =>
    subject.ensure({ notAfter: subject.notAfter(notAfterRoomMs), mayCreate: false }, call),
  finish: async (bench, subject) => {
    await subject.converge({ mayCreate: false });
    const { spec } = subject;
    const { instance } = await subject.answered(subject.describe({ spec }), "it as wanted");
    const drift = (instance?.drift ?? []).map(({ field }) => field);
    expect(drift.length === 0, "the change in effect", () => `${drift.join(", ")} drifted`);
    await expectCount(bench, subject.keyStamp, 1);
  },
};

const removal: VendorChange = {
  operation: "delete",
  isRepeatable: false,
  needs: [{ kind: "capability", name: "DELETE" }],
  prepare: async (bench, name) => {
    const subject = bench.subject(name);
    await subject.converge();
    return subject;
  },
  send: (subject, call) => subject.delete({ notAfter: subject.notAfter(notAfterRoomMs) }, call),
  finish: async (bench, subject) => {
    await subject.remove();
    await expectCount(bench, subject.keyStamp, 0);
  },
};

export const vendorChanges: readonly VendorChange[] = [creation, correction, removal];

/** The end: at once where nothing is in doubt, else when it no longer is. */
export async function finished(
  bench: Bench,
  { finish, isRepeatable }: VendorChange,
  subject: Subject,
): Promise<Later | undefined> {
  const afterMs = isRepeatable ? 0 : subject.doubtLeftMs;
  if (afterMs > 0) return { afterMs, check: () => finish(bench, subject) };
  await finish(bench, subject);
  return undefined;
}

/** The vendor's truth about one key. */
export async function expectCount(bench: Bench, keyStamp: string, count: number): Promise<void> {
  const found = await bench.faults.instancesWith(keyStamp);
  const came = (): string => `there are ${found.length}: ${found.map(({ id }) => id).join(", ")}`;
  expect(found.length === count, `exactly ${count} of this key at the vendor`, came);
}

/** How often the vendor was asked to do it since the mark. */
export async function askedSince(
  bench: Bench,
  mark: number,
  operation: Operation,
): Promise<number> {
  const requests = await bench.faults.requestsSince(mark);
  return requests.filter((request) => request.operation === operation).length;
}

/** An open circuit is waited for no longer than this. */
const openMsMax = 15_000;
const retryMsMin = 50;

/**
 * Calls again while the adapter's own breaker refuses: whoever breaks a vendor many times over meets
 * it, and what was refused so has reached nobody.
 */
export async function admitted<T>(call: () => Promise<Reply<T>>): Promise<Reply<T>> {
  const endMs = Date.now() + openMsMax;
  for (;;) {
    const reply = await call();
    const isOpen = reply.kind === "failure" && reply.failure.reason === "CIRCUIT_OPEN";
    if (!isOpen || Date.now() > endMs) return reply;
    await systemClock.sleep(Math.min(Math.max(reply.failure.retryDelayMs ?? 0, retryMsMin), 1_000));
  }
}

/**
 * Two changes that the vendor carries out: where breakers count shares, one failure more does not
 * open the circuit that the next cases need.
 */
export async function succeedTwice(bench: Bench, name: string): Promise<void> {
  const subject = bench.subject(`well-${name}`);
  await subject.converge();
  if (bench.hasCapability("DELETE")) await subject.remove();
}
