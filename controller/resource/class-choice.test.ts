import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseClass, hostMatches, hostOf } from "./class-choice.ts";
import type { ClassChoice } from "./class-choice.ts";
import { classWith, endpointA, endpointB, objectWith, placementJson } from "./object-fixture.ts";
import type { ProviderClass } from "./provider-class.ts";

const isDefault = { metadata: { annotations: { "dhp.example.com/is-default-class": "true" } } };
const isDeleting = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };
const exact = classWith("exact", ["a.example.com"]);
const exactToo = classWith("exact-too", ["A.example.com"]);
const suffix = classWith("suffix", ["*.example.com"]);
const longer = classWith("longer", ["*.eu.example.com", "*.com"]);
const other = classWith("other", ["elsewhere.example.org"]);
const byDefault = classWith("by-default", [], isDefault);
const byDefaultToo = classWith("by-default-too", [], isDefault);
const restricted = classWith("restricted", ["a.example.com"], {
  spec: { allowedNamespaces: ["news", "sport"] },
});
const open = classWith("open", []);

/** The class's name, or the reason why there is none. */
function brief(choice: ClassChoice): string {
  return choice.kind === "chosen" ? choice.class.name : choice.reason;
}

interface Row {
  readonly rule: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly generation?: number;
  readonly classes: readonly ProviderClass[];
  readonly expected: string;
}

const euEndpoint = "https://tts.eu.example.com";
const pinned = { className: "suffix", observedGeneration: 1 };
const recorded = { placements: [placementJson(endpointA, "realm-1", { class: "suffix" })] };

const rows: readonly Row[] = [
  { rule: "an exact host is chosen", classes: [other, exact], expected: "exact" },
  { rule: "an exact host beats a suffix", classes: [suffix, exact], expected: "exact" },
  { rule: "a suffix covers a host below it", classes: [suffix, other], expected: "suffix" },
  {
    rule: "the longest suffix wins",
    spec: { endpoint: euEndpoint },
    classes: [suffix, longer],
    expected: "longer",
  },
  { rule: "a match beats the default", classes: [byDefault, suffix], expected: "suffix" },
  {
    rule: "the default takes what none covers",
    classes: [other, byDefault],
    expected: "by-default",
  },
  { rule: "without a match or default there is none", classes: [other], expected: "NoClass" },
  { rule: "no class at all", classes: [], expected: "NoClass" },
  { rule: "a tie is no guess", classes: [exact, exactToo], expected: "AmbiguousClass" },
  {
    rule: "two defaults are a tie",
    classes: [byDefault, byDefaultToo],
    expected: "AmbiguousClass",
  },
  {
    rule: "a class being deleted is not chosen",
    classes: [classWith("going", ["a.example.com"], isDeleting), suffix],
    expected: "suffix",
  },
  {
    rule: "a named class beats a closer match",
    spec: { className: "suffix" },
    classes: [exact, suffix],
    expected: "suffix",
  },
  {
    rule: "a named class that is missing is no class",
    spec: { className: "gone" },
    classes: [exact],
    expected: "NoClass",
  },
  {
    rule: "a named class has to cover the host",
    spec: { className: "other" },
    classes: [exact, other],
    expected: "NotAllowed",
  },
  {
    rule: "a named class without hosts leaves that to its adapter",
    spec: { className: "open" },
    classes: [open],
    expected: "open",
  },
  { rule: "a namespace has to be allowed", classes: [restricted], expected: "NotAllowed" },
  {
    rule: "a pinned choice stays though a closer class appears",
    status: pinned,
    classes: [suffix, exact],
    expected: "suffix",
  },
  {
    rule: "a pinned choice stays while another place is still recorded",
    spec: { endpoint: endpointB },
    status: { ...pinned, ...recorded },
    classes: [suffix, classWith("b", ["b.example.com"])],
    expected: "suffix",
  },
  {
    rule: "a change of something else moves nobody who is recorded",
    status: { ...pinned, ...recorded },
    generation: 2,
    classes: [suffix, exact],
    expected: "suffix",
  },
  {
    rule: "a changed endpoint is chosen for anew",
    spec: { endpoint: endpointB },
    status: { ...pinned, ...recorded },
    generation: 2,
    classes: [suffix, classWith("b", ["b.example.com"])],
    expected: "b",
  },
  {
    rule: "what is recorded counts where nothing is pinned",
    status: recorded,
    classes: [suffix, exact],
    expected: "suffix",
  },
  {
    rule: "a pinned class that is missing is no class",
    status: { className: "gone", observedGeneration: 1 },
    classes: [exact],
    expected: "NoClass",
  },
];

for (const { rule, spec, status, generation, classes, expected } of rows) {
  test(`class choice: ${rule}`, () => {
    const object = objectWith({
      metadata: { generation: generation ?? 1 },
      ...(spec === undefined ? {} : { spec }),
      ...(status === undefined ? {} : { status }),
    });
    assert.equal(brief(chooseClass(object, classes)), expected);
    assert.equal(brief(chooseClass(object, classes.toReversed())), expected, "in any order");
  });
}

test("the place has the class's account", () => {
  const withAccount = classWith("a", ["a.example.com"], { spec: { account: "eu" } });
  const choice = chooseClass(objectWith({}), [withAccount]);
  assert.deepEqual(choice.kind === "chosen" ? choice.place : choice, {
    class: "a",
    endpoint: endpointA,
    region: "r",
    account: "eu",
  });
});

test("a tie names both classes and what to do", () => {
  const choice = chooseClass(objectWith({}), [exactToo, exact]);
  assert.equal(choice.kind, "none");
  assert.equal(
    choice.kind === "none" ? choice.message : "",
    'classes "exact" and "exact-too" cover host "a.example.com" equally: name one in spec.className',
  );
});

test("a suffix covers what is below it, and not itself or a longer word", () => {
  assert.equal(hostMatches("*.example.com", "a.example.com"), true);
  assert.equal(hostMatches("*.example.com", "a.b.example.com"), true);
  assert.equal(hostMatches("*.example.com", "example.com"), false);
  assert.equal(hostMatches("*.example.com", "an-example.com"), false);
  assert.equal(hostMatches("A.example.com", "a.example.com"), true);
});

test("a host has no port and no capitals", () => {
  assert.equal(hostOf("https://TTS.Example.com:8443/x"), "tts.example.com");
  assert.equal(hostOf("nonsense"), "");
});
