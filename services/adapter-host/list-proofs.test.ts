import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../process/fake-clock.ts";
import { ListProofs } from "./list-proofs.ts";

const holdMsMax = 1_000;

/** Readings that end when the test says so. */
class Readings {
  readonly #ends: PromiseWithResolvers<string>[] = [];

  readonly read = (): Promise<string> => {
    const end = Promise.withResolvers<string>();
    this.#ends.push(end);
    return end.promise;
  };

  get count(): number {
    return this.#ends.length;
  }

  end(index: number, answer: string): void {
    this.#ends[index]?.resolve(answer);
  }

  fail(index: number): void {
    this.#ends[index]?.reject(new Error(`reading ${index} was cut off`));
  }
}

function proofsOn(clock: FakeClock): ListProofs<string> {
  return new ListProofs({ clock, holdMsMax });
}

test("calls that ask while a reading is under way share the one that follows it", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  const first = proofs.prove("a", readings.read);
  const others = [1, 2, 3].map(() => proofs.prove("a", readings.read));
  await clock.advance(0);
  assert.equal(readings.count, 1);
  readings.end(0, "one");
  assert.equal(await first, "one");
  await clock.advance(0);
  assert.equal(readings.count, 2, "none of them may take what was read before it asked");
  readings.end(1, "two");
  assert.deepEqual(await Promise.all(others), ["two", "two", "two"]);
});

test("realms read by themselves", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  const both = [proofs.prove("a", readings.read), proofs.prove("b", readings.read)];
  await clock.advance(0);
  assert.equal(readings.count, 2);
  readings.end(0, "a");
  readings.end(1, "b");
  assert.deepEqual(await Promise.all(both), ["a", "b"]);
});

test("who follows a reading that was cut off begins one of its own", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  const first = proofs.prove("a", readings.read);
  const starter = proofs.prove("a", readings.read);
  const follower = proofs.prove("a", readings.read);
  await clock.advance(0);
  readings.end(0, "one");
  await first;
  await clock.advance(0);
  readings.fail(1);
  await assert.rejects(starter, /cut off/);
  await clock.advance(0);
  readings.end(2, "three");
  assert.equal(await follower, "three");
});

test("a mutation waits for a reading, and a reading for mutations in flight", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  const order: string[] = [];
  const mutation = Promise.withResolvers<void>();
  const inFlight = proofs.mutation("a", () => mutation.promise);
  const reading = proofs.prove("a", readings.read);
  const later = proofs.mutation("a", async () => void order.push("later mutation"));
  await clock.advance(0);
  assert.equal(readings.count, 0);
  mutation.resolve();
  await inFlight;
  await clock.advance(0);
  assert.equal(readings.count, 1);
  assert.deepEqual(order, []);
  readings.end(0, "read");
  await reading;
  await later;
  assert.deepEqual(order, ["later mutation"]);
});

test("neither waits for the other longer than the hold", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  void proofs.mutation("a", () => new Promise(() => undefined));
  const reading = proofs.prove("a", readings.read);
  await clock.advance(holdMsMax);
  assert.equal(readings.count, 1);
  let isDone = false;
  const later = proofs.mutation("a", async () => void (isDone = true));
  await clock.advance(holdMsMax);
  await later;
  assert.equal(isDone, true);
  readings.end(0, "late");
  assert.equal(await reading, "late");
});

test("a hung mutation holds back one reading, not each that follows", async () => {
  const clock = new FakeClock();
  const proofs = proofsOn(clock);
  const readings = new Readings();
  void proofs.mutation("a", () => new Promise(() => undefined));
  const first = proofs.prove("a", readings.read);
  await clock.advance(holdMsMax);
  readings.end(0, "first");
  assert.equal(await first, "first");
  const second = proofs.prove("a", readings.read);
  await clock.advance(0);
  assert.equal(readings.count, 2, "it has been waited for long enough");
  readings.end(1, "second");
  assert.equal(await second, "second");
});
