import assert from "node:assert/strict";
import { test } from "node:test";

import { classWith } from "./object-fixture.ts";
import { defaultClassAnnotation } from "./names.ts";
import { isSameToObjects } from "./provider-class.ts";

type Change = Parameters<typeof classWith>[2];

const isSame = (change: Change): boolean =>
  isSameToObjects(classWith("a", ["a.example.com"]), classWith("a", ["a.example.com"], change));

test("a class whose status or finalizer alone has changed is the same to objects", () => {
  assert.ok(isSame({}));
  assert.ok(
    isSame({ metadata: { resourceVersion: "9", finalizers: ["dhp.example.com/class-in-use"] } }),
  );
});

test("a class with another spec, made anew, marked as default or going away is another one", () => {
  const changes: readonly Change[] = [
    { spec: { account: "other" } },
    { spec: { maxConcurrentCalls: 2 } },
    { metadata: { uid: "uid-2" } },
    { metadata: { generation: 2 } },
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
    { metadata: { annotations: { [defaultClassAnnotation]: "true" } } },
  ];
  for (const change of changes) assert.ok(!isSame(change), JSON.stringify(change));
});
