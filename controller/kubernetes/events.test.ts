import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { ApiError } from "./api-error.ts";
import type { ApiErrorKind } from "./api-error.ts";
import type { ApiRequest } from "./connection.ts";
import type { ObjectEvent } from "./event-object.ts";
import { EventRecorder } from "./events.ts";
import type { EventLimits } from "./events.ts";
import { isRawObject } from "./raw-object.ts";

describe("event recorder", () => {
  let clock: FakeClock;
  let requests: ApiRequest[];
  let respond: (request: ApiRequest) => Promise<unknown>;
  let outcomes: string[];
  let recorder: EventRecorder;

  beforeEach(() => {
    clock = new FakeClock();
    requests = [];
    outcomes = [];
    respond = async () => ({});
    recorder = create();
  });

  function create(limits: Partial<EventLimits> = {}): EventRecorder {
    return new EventRecorder({
      connection: {
        request: (request) => {
          requests.push(request);
          return respond(request);
        },
      },
      clock,
      log: silentLog,
      reportingController: "example.com/controller",
      reportingInstance: "replica-1",
      metrics: { onEvent: (outcome) => outcomes.push(outcome) },
      limits,
    });
  }

  function event(fields: Partial<ObjectEvent> = {}): ObjectEvent {
    const regarding = {
      apiVersion: "example.com/v1",
      kind: "Widget",
      namespace: "ns",
      name: "a",
      uid: "u",
    };
    return { regarding, type: "Normal", reason: "Created", action: "Ensure", note: "n", ...fields };
  }

  function body(index: number): Readonly<Record<string, unknown>> {
    const value = requests[index]?.body;
    assert.ok(isRawObject(value));
    return value;
  }

  test("an event is created in its object's namespace with all required fields", async () => {
    recorder.record(event());
    await clock.advance(0);
    assert.equal(requests[0]?.path, "/apis/events.k8s.io/v1/namespaces/ns/events");
    const { metadata, ...rest } = body(0);
    assert.deepEqual(rest, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "example.com/controller",
      reportingInstance: "replica-1",
      action: "Ensure",
      reason: "Created",
      type: "Normal",
      note: "n",
      regarding: event().regarding,
    });
    assert.match(JSON.stringify(metadata), /"name":"a\.[0-9a-f]{16}","namespace":"ns"/);
  });

  test("an event about a cluster-scoped object lives in namespace default", async () => {
    const regarding = { ...event().regarding, namespace: undefined };
    recorder.record(event({ regarding }));
    await clock.advance(0);
    assert.equal(requests[0]?.path, "/apis/events.k8s.io/v1/namespaces/default/events");
  });

  test("repeats become one count, written at most once an interval", async () => {
    for (let count = 0; count < 100; count += 1) recorder.record(event());
    await clock.advance(0);
    assert.equal(requests.length, 1);
    for (let minute = 0; minute < 4; minute += 1) {
      recorder.record(event());
      await clock.advance(60_000);
    }
    const patches = requests.slice(1);
    assert.equal(patches.length, 4);
    assert.equal(patches[3]?.method, "PATCH");
    assert.deepEqual(patches[3]?.body, {
      series: { count: 104, lastObservedTime: "2026-01-01T00:03:00.000000Z" },
    });
    assert.deepEqual(
      requests.map(({ method }) => method).filter((method) => method === "POST"),
      ["POST"],
    );
  });

  test("what happens again after a long pause is a new event", async () => {
    recorder.record(event());
    await clock.advance(6 * 60_000 + 1);
    recorder.record(event());
    await clock.advance(0);
    assert.deepEqual(
      requests.map(({ method }) => method),
      ["POST", "POST"],
    );
  });

  test("another reason, note or incarnation is another event", async () => {
    recorder.record(event());
    recorder.record(event({ reason: "Deleted" }));
    recorder.record(event({ note: "other" }));
    recorder.record(event({ regarding: { ...event().regarding, uid: "u2" } }));
    await clock.advance(0);
    assert.equal(requests.length, 4);
  });

  test("a series whose event has expired gets a new one with its count", async () => {
    recorder.record(event());
    await clock.advance(0);
    respond = async ({ method }) => {
      if (method === "PATCH") throw failure("not-found");
      return {};
    };
    recorder.record(event());
    await clock.advance(30_000);
    assert.deepEqual(
      requests.map(({ method }) => method),
      ["POST", "PATCH", "POST"],
    );
    const { series, metadata } = body(2);
    assert.notDeepEqual(metadata, body(0)["metadata"]);
    assert.deepEqual(series, { count: 2, lastObservedTime: "2026-01-01T00:00:00.000000Z" });
  });

  test("a lost answer makes no second event", async () => {
    const names: unknown[] = [];
    respond = async (request) => {
      const { metadata } = isRawObject(request.body) ? request.body : {};
      names.push(isRawObject(metadata) ? metadata["name"] : undefined);
      throw failure(names.length === 1 ? "timeout" : "already-exists");
    };
    recorder.record(event());
    await clock.advance(1_000);
    assert.equal(names.length, 2);
    assert.equal(names[0], names[1]);
    assert.deepEqual(outcomes, ["sent"]);
  });

  test("a server that fails is asked a few times, a refusal once; recording never throws", async () => {
    respond = async () => {
      throw failure("server");
    };
    recorder.record(event());
    await clock.advance(60_000);
    assert.equal(requests.length, 3);
    respond = async () => {
      throw failure("forbidden");
    };
    recorder.record(event({ note: "other" }));
    await clock.advance(60_000);
    assert.equal(requests.length, 4);
    assert.deepEqual(outcomes, ["dropped", "dropped"]);
  });

  test("one object cannot flood: a burst, then one an interval", async () => {
    recorder = create({ objectBurst: 5, objectRefillMs: 60_000 });
    for (let count = 0; count < 50; count += 1) recorder.record(event({ note: `note ${count}` }));
    await clock.advance(0);
    assert.equal(requests.length, 5);
    assert.equal(outcomes.filter((outcome) => outcome === "dropped").length, 45);
    await clock.advance(60_000);
    recorder.record(event({ note: "later" }));
    await clock.advance(0);
    assert.equal(requests.length, 6);
  });

  test("all objects together cannot flood the API server", async () => {
    recorder = create({ callBurst: 10, callRefillMs: 1_000 });
    for (let count = 0; count < 30; count += 1) {
      recorder.record(event({ regarding: { ...event().regarding, uid: `u${count}` } }));
    }
    await clock.advance(0);
    assert.equal(requests.length, 10);
    await clock.advance(20_000);
    assert.equal(requests.length, 30);
  });

  test("what waits to be written is bounded while the API server hangs", async () => {
    respond = () => new Promise(() => undefined);
    recorder = create({ pendingMax: 100 });
    for (let count = 0; count < 1_000; count += 1) {
      recorder.record(event({ regarding: { ...event().regarding, uid: `u${count}` } }));
    }
    assert.equal(outcomes.filter((outcome) => outcome === "dropped").length, 900);
  });

  test("long notes and names are cut to what validation allows, between characters", async () => {
    const regarding = { ...event().regarding, name: `${"n".repeat(240)}-------------` };
    recorder.record(event({ note: "杭".repeat(1_000), regarding }));
    await clock.advance(0);
    const { note, metadata } = body(0);
    assert.equal(note, "杭".repeat(341));
    const name = isRawObject(metadata) ? String(metadata["name"]) : "";
    assert.ok(name.length <= 253);
    assert.match(name, /^n+\.[0-9a-f]{16}$/);
  });

  test("stopping writes what is pending, counts included, and leaves no timer", async () => {
    recorder.record(event());
    await clock.advance(0);
    recorder.record(event());
    recorder.record(event({ note: "other" }));
    await recorder.stop(1_000);
    recorder.record(event({ note: "late" }));
    assert.deepEqual(
      requests.map(({ method }) => method),
      ["POST", "POST", "PATCH"],
    );
    assert.equal(clock.pendingTimerCount, 0);
  });

  test("stopping ends within its limit while the API server hangs", async () => {
    respond = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(failure("aborted")), { once: true });
      });
    recorder.record(event());
    await clock.advance(0);
    const stopped = recorder.stop(1_000);
    await clock.advance(1_000);
    await stopped;
    assert.equal(clock.pendingTimerCount, 0);
  });
});

function failure(kind: ApiErrorKind): ApiError {
  return new ApiError({ kind, status: 0, reason: "", message: kind });
}
