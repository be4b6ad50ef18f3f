import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { chooseClass } from "../resource/class-choice.ts";
import type { JsonObject } from "../resource/json-door.ts";
import {
  classWith,
  endpointA,
  endpointB,
  objectWith,
  placementJson,
} from "../resource/object-fixture.ts";
import type { Placement } from "../resource/placement.ts";
import { decide, identity, noFacts, placementsMax, recordAfterEnsure } from "./decide.ts";
import type { Described, RemovalAnswer, Step } from "./decide.ts";

const cleanup = "dhp.example.com/provider-cleanup";
const classA = classWith("a", ["a.example.com", "b.example.com"]);

interface Situation {
  readonly spec?: JsonObject;
  readonly placements?: readonly JsonObject[];
  readonly hasFinalizer?: boolean;
  readonly isDeleting?: boolean;
  readonly observedGeneration?: number;
  readonly hasNoClass?: boolean;
  readonly isSettled?: boolean;
  readonly doubtfulRealms?: readonly string[];
  readonly isFresh?: boolean;
  readonly isAbsent?: boolean;
  readonly isEnsured?: boolean;
  readonly described?: Described;
  /** Answers of removals by realm. */
  readonly removals?: Readonly<Record<string, RemovalAnswer>>;
}

function stepIn(situation: Situation): Step {
  const { placements = [], spec, removals = {}, described } = situation;
  const hasFinalizer = situation.hasFinalizer ?? placements.length > 0;
  const object = objectWith({
    metadata: {
      finalizers: hasFinalizer ? [cleanup] : [],
      ...(situation.isDeleting === true ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    ...(spec === undefined ? {} : { spec }),
    status: { placements, observedGeneration: situation.observedGeneration ?? 0 },
  });
  const answers = object.record.flatMap((placement) => {
    const answer = removals[placement.realm];
    return answer === undefined ? [] : [[identity(placement), answer] as const];
  });
  return decide({
    object,
    choice: chooseClass(object, situation.hasNoClass === true ? [] : [classA]),
    isSettled: situation.isSettled ?? false,
    isInDoubt: (realm) => situation.doubtfulRealms?.includes(realm) ?? false,
    facts: {
      ...noFacts(),
      isFresh: situation.isFresh ?? false,
      isAbsent: situation.isAbsent ?? false,
      isEnsured: situation.isEnsured ?? false,
      ...(described === undefined ? {} : { described }),
      removals: new Map(answers),
    },
  });
}

/** The step in a word or two: kind, and where or with what. */
function brief(step: Step): string {
  switch (step.kind) {
    case "rest":
      return `rest: ${step.why}`;
    case "remove":
    case "observe":
    case "record-first":
      return `${step.kind} ${step.placement.realm}`;
    case "ensure":
      return `ensure ${step.placement.realm}${step.mayCreate ? ", may create" : ""}`;
    case "drop":
    case "record":
    case "clear-id":
      return `${step.kind} ${step.record.map(wordsOf).join(" ")}`.trim();
    case "describe":
      return `describe ${step.place.endpoint}`;
    default:
      return step.kind;
  }
}

function wordsOf({ realm, providerID, state }: Placement): string {
  const id = providerID === "" ? "" : `(${providerID})`;
  return `${realm}${id}${state === "Retiring" ? "!" : ""}`;
}

const atA = placementJson(endpointA, "realm-1");
const atAWithId = placementJson(endpointA, "realm-1", { providerID: "i-1" });
const atB = placementJson(endpointB, "realm-2");
const atBWithId = placementJson(endpointB, "realm-2", { providerID: "i-2" });
const retiringA = placementJson(endpointA, "realm-1", { providerID: "i-1", state: "Retiring" });
const toB = { endpoint: endpointB };

type Rows = readonly (readonly [rule: string, situation: Situation, expected: string])[];

function table(name: string, rows: Rows): void {
  describe(name, () => {
    for (const [rule, situation, expected] of rows) {
      test(rule, () => assert.equal(brief(stepIn(situation)), expected));
    }
  });
}

table("rule 1, first creation", [
  ["reads first", {}, `describe ${endpointA}`],
  ["a vendor that did not answer leads to no record", { isEnsured: true }, "rest: ensured"],
  ["its answer is recorded", { described: { realm: "realm-1" } }, "record-first realm-1"],
  [
    "another cluster's instance is not recorded",
    { described: { realm: "realm-1", foreignOwner: "cluster-2" } },
    "rest: owned-by-another",
  ],
  [
    "another cluster's instance is recorded where it shall be adopted",
    {
      spec: { adopt: { providerID: "i-9", takeOverFrom: { cluster: "cluster-2", uid: "u" } } },
      described: { realm: "realm-1", foreignOwner: "cluster-2" },
    },
    "record-first realm-1",
  ],
  [
    "the successful write allows the create in the same pass",
    { placements: [atA], isFresh: true },
    "ensure realm-1, may create",
  ],
]);

table("rule 2, a move", [
  ["reads the new place first", { spec: toB, placements: [atAWithId] }, `describe ${endpointB}`],
  [
    "another realm is recorded beside the first",
    { spec: toB, placements: [atAWithId], described: { realm: "realm-2" } },
    "record realm-1(i-1) realm-2",
  ],
  [
    "the same realm replaces the first and keeps its id",
    { spec: toB, placements: [atAWithId], described: { realm: "realm-1" } },
    "record realm-1(i-1)",
  ],
  [
    "the same realm replaces one of several",
    {
      spec: { endpoint: "https://a.example.com/v2" },
      placements: [atAWithId, atB],
      described: { realm: "realm-1" },
    },
    "record realm-1(i-1) realm-2",
  ],
  [
    "a realm that retires is finished first",
    {
      spec: toB,
      placements: [retiringA],
      described: { realm: "realm-1" },
      removals: { "realm-1": "open" },
    },
    "rest: retiring",
  ],
  [
    "a retiring placement is removed before anything else",
    { spec: toB, placements: [retiringA, atBWithId] },
    "remove realm-1",
  ],
  [
    "one that is gone is dropped",
    { spec: toB, placements: [retiringA, atBWithId], removals: { "realm-1": "gone" } },
    "drop realm-2(i-2)",
  ],
  [
    "one that is not gone yet keeps nobody from the new place",
    { spec: toB, placements: [retiringA, atBWithId], removals: { "realm-1": "open" } },
    "ensure realm-2",
  ],
  [
    "a retiring place is not ensured again though spec has come back to it",
    { placements: [retiringA, atBWithId], removals: { "realm-1": "open" } },
    "rest: retiring",
  ],
  [
    "the record has a bound",
    {
      spec: toB,
      placements: Array.from({ length: placementsMax }, (_, index) =>
        placementJson(`https://x${index}.example.com`, `realm-x${index}`),
      ),
      described: { realm: "realm-2" },
    },
    "rest: record-full",
  ],
]);

table("rule 3, deletion", [
  [
    "without our finalizer it is not ours",
    { isDeleting: true, hasFinalizer: false, placements: [atA] },
    "rest: not-ours",
  ],
  ["nothing recorded ends it", { isDeleting: true, hasFinalizer: true }, "remove-finalizer"],
  [
    "nothing recorded ends it, settled or protected or not",
    { isDeleting: true, hasFinalizer: true, isSettled: true, spec: { deletionProtection: true } },
    "remove-finalizer",
  ],
  ["visits the first placement", { isDeleting: true, placements: [atA, atB] }, "remove realm-1"],
  [
    "visits each placement",
    { isDeleting: true, placements: [atA, atB], removals: { "realm-1": "open" } },
    "remove realm-2",
  ],
  [
    "drops what is gone and keeps what is open",
    {
      isDeleting: true,
      placements: [atA, atB],
      removals: { "realm-1": "gone", "realm-2": "open" },
    },
    "drop realm-2",
  ],
  [
    "waits for what is open",
    { isDeleting: true, placements: [atB], removals: { "realm-2": "open" } },
    "rest: removing",
  ],
  [
    "the finalizer goes with the last",
    {
      isDeleting: true,
      placements: [atA, atB],
      removals: { "realm-1": "gone", "realm-2": "gone" },
    },
    "remove-finalizer",
  ],
  [
    "protection holds it",
    { isDeleting: true, placements: [atA], spec: { deletionProtection: true } },
    "rest: protected",
  ],
  [
    "suspension does not hold it",
    { isDeleting: true, placements: [atA], spec: { suspend: true } },
    "remove realm-1",
  ],
  [
    "a missing class does not hold it",
    { isDeleting: true, placements: [atA], hasNoClass: true },
    "remove realm-1",
  ],
]);

table("rule 4, doubt", [
  [
    "nobody creates",
    { placements: [atA], doubtfulRealms: ["realm-1"], isFresh: true },
    "ensure realm-1",
  ],
  [
    "absence waits for its end",
    { placements: [atA], doubtfulRealms: ["realm-1"], isAbsent: true, isFresh: true },
    "rest: in-doubt",
  ],
  [
    "absence of a recorded id waits as well",
    { placements: [atAWithId], doubtfulRealms: ["realm-1"], isAbsent: true },
    "rest: in-doubt",
  ],
  [
    "doubt of another realm is no doubt",
    { placements: [atA], doubtfulRealms: ["realm-2"], isFresh: true },
    "ensure realm-1, may create",
  ],
]);

table("rule 5, a create needs a fresh object", [
  ["a cached one is confirmed by a live read", { placements: [atA] }, "confirm"],
  [
    "a recorded id is looked for first",
    { placements: [atAWithId], isFresh: true },
    "ensure realm-1",
  ],
  [
    "an id that is gone is cleared by a write",
    { placements: [atAWithId], isAbsent: true },
    "clear-id realm-1",
  ],
  [
    "after that write it is made again",
    { placements: [atA], isAbsent: true, isFresh: true },
    "ensure realm-1, may create",
  ],
  ["an answer ends the pass", { placements: [atAWithId], isEnsured: true }, "rest: ensured"],
  [
    "a finalizer that is missing is put back first",
    { placements: [atAWithId], hasFinalizer: false },
    "restore-finalizer",
  ],
]);

table("what comes before the rules", [
  ["memory", { placements: [atAWithId], isSettled: true }, "rest: settled"],
  ["suspension", { placements: [atAWithId], spec: { suspend: true } }, "rest: suspended"],
  [
    "suspension, before cleaning up",
    { placements: [retiringA, atBWithId], spec: { ...toB, suspend: true } },
    "rest: suspended",
  ],
  ["the choice of a class", { hasNoClass: true }, "rest: no-class"],
  [
    "cleaning up, even without a class",
    { placements: [retiringA, atBWithId], hasNoClass: true },
    "remove realm-1",
  ],
]);

table("driftPolicy Observe", [
  [
    "reads what is as asked",
    { placements: [atAWithId], spec: { driftPolicy: "Observe" }, observedGeneration: 1 },
    "observe realm-1",
  ],
  [
    "ensures a new generation",
    { placements: [atAWithId], spec: { driftPolicy: "Observe" } },
    "ensure realm-1",
  ],
  [
    "makes again what is gone",
    {
      placements: [atAWithId],
      spec: { driftPolicy: "Observe" },
      observedGeneration: 1,
      isAbsent: true,
    },
    "clear-id realm-1",
  ],
]);

test("once the new place is READY, and not before, the others retire", () => {
  const { record } = objectWith({ status: { placements: [atAWithId, atB] } });
  const place = { class: "a", endpoint: endpointB, region: "r", account: "" };
  const after = (isReady: boolean): string =>
    recordAfterEnsure(record, place, { providerID: "i-2", isReady }).map(wordsOf).join(" ");
  assert.equal(after(false), "realm-1(i-1) realm-2(i-2)");
  assert.equal(after(true), "realm-1(i-1)! realm-2(i-2)");
});

test("an answer that tells nothing new leaves the record as it is", () => {
  const { record } = objectWith({ status: { placements: [atAWithId] } });
  const place = { class: "a", endpoint: endpointA, region: "r", account: "" };
  const after = recordAfterEnsure(record, place, { providerID: "i-1", isReady: true });
  assert.deepEqual(after, record);
});
