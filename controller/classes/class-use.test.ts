import assert from "node:assert/strict";
import { test } from "node:test";
import { classUses } from "./class-use.ts";

function object(name: string, fields: { status?: object; annotations?: object } = {}) {
  return {
    metadata: { namespace: "media", name, annotations: fields.annotations ?? {} },
    status: fields.status ?? {},
  };
}

const firstPlacement = "dhp.example.com/first-placement";

test("an object uses the class that it is pinned to and every class in its record, once each", () => {
  const placements = [{ class: "old" }, { class: "new" }, { class: "new" }];
  const uses = classUses([object("a", { status: { className: "new", placements } })]);
  assert.deepEqual([...uses.keys()].sort(), ["new", "old"]);
  assert.deepEqual(uses.get("new"), { count: 1, names: ["media/a"] });
});

test("a first placement counts before status.placements is written", () => {
  const annotations = { [firstPlacement]: JSON.stringify({ placement: { class: "first" } }) };
  assert.equal(classUses([object("a", { annotations })]).get("first")?.count, 1);
});

test("an annotation that is no record of ours names no class", () => {
  for (const value of ["not json", "[]", "{}", '{"placement":{"class":7}}']) {
    const annotations = { [firstPlacement]: value };
    assert.equal(classUses([object("a", { annotations })]).size, 0, value);
  }
});

test("the first five names in order, and the count of all", () => {
  const objects = ["g", "f", "e", "d", "c", "b", "a"].map((name) =>
    object(name, { status: { className: "busy" } }),
  );
  assert.deepEqual(classUses(objects).get("busy"), {
    count: 7,
    names: ["media/a", "media/b", "media/c", "media/d", "media/e"],
  });
});
