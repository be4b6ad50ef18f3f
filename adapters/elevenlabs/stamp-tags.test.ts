import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { makeStamp } from "../../services/adapter-host/stamp.ts";
import { readStampTags, tagsWith, tagsWithout } from "./stamp-tags.ts";

const stamp = makeStamp("fleet/ns/name", { cluster: "c", uid: "u" }, "h");

describe("a stamp in tags", () => {
  it("comes back whole, wherever the tags stand", () => {
    const tags = tagsWith(stamp, ["a", "b"], "full");
    assert.deepEqual(readStampTags(tags.toReversed()), stamp);
    assert.deepEqual(tagsWithout(tags), ["a", "b"]);
  });

  it("replaces the one before it", () => {
    const before = makeStamp("fleet/ns/other", { cluster: "d", uid: "v" }, "g");
    const tags = tagsWith(stamp, tagsWith(before, ["a"], "full"), "full");
    assert.deepEqual(readStampTags(tags), stamp);
    assert.equal(tags.filter((tag) => tag.startsWith("dhp-")).length, 5);
  });

  it("counts by its short form where key or cluster do not lead to it", () => {
    const cut = tagsWith(stamp, [], "full").map((tag) => tag.replace("fleet/ns/name", "fleet/ns"));
    const short = { ...stamp, key: "", cluster: "" };
    assert.deepEqual(readStampTags(cut), short);
    const forged = ["dhp-key=fleet/ns/forged", "dhp-cluster=forged", stamp.short];
    assert.deepEqual(readStampTags(forged), { ...short, uid: "", specHash: "" });
  });

  it("is none without its short form", () => {
    const tags = tagsWith(stamp, [], "full").filter((tag) => tag !== stamp.short);
    assert.equal(readStampTags(tags), undefined);
    assert.equal(readStampTags([]), undefined);
  });

  it("leaves out what is too long when it has to be short", () => {
    const long = makeStamp("f/n/k".padEnd(300, "k"), { cluster: "c".repeat(253), uid: "u" }, "h");
    const tags = tagsWith(long, [], "short");
    assert.ok(tags.every((tag) => tag.length <= 48));
    assert.deepEqual(readStampTags(tags), { ...long, key: "", cluster: "" });
  });
});
