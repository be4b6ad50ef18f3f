import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { makeStamp } from "../../services/adapter-host/stamp.ts";
import { descriptionWith, descriptionWithout, readStamp } from "./stamp-text.ts";

const stamp = makeStamp("fleet/ns/name", { cluster: "5a8c", uid: "0f1e" }, "hash-1");
const words = "A friendly receptionist.\nSpeaks [slowly].";

describe("the stamp in a description", () => {
  it("is read as it was written, whatever people wrote beside it", () => {
    for (const text of ["", words, `${words} `, "[dhp-]", descriptionWith(stamp, "old")]) {
      assert.deepEqual(readStamp(descriptionWith(stamp, text)), stamp);
    }
  });

  it("is read where a vendor made one line of it or people wrote before it", () => {
    const written = descriptionWith(stamp, words);
    assert.deepEqual(readStamp(written.replaceAll("\n", " ")), stamp);
    assert.deepEqual(readStamp(`${words}\n${written}`), stamp);
  });

  it("holds what would break the bracket", () => {
    const odd = makeStamp("f/n/a]b[c d&e=f%%", { cluster: "my cluster", uid: "]" }, "");
    assert.deepEqual(readStamp(descriptionWith(odd, words)), odd);
  });

  it("leaves people's words when it is taken off, and replaces itself", () => {
    assert.equal(descriptionWithout(descriptionWith(stamp, words)), words);
    assert.equal(descriptionWithout(descriptionWith(stamp, "")), "");
    assert.equal(descriptionWithout(words), words);
    const next = makeStamp("fleet/ns/name", { cluster: "5a8c", uid: "2222" }, "hash-2");
    const twice = descriptionWith(next, descriptionWith(stamp, words));
    assert.equal(twice, descriptionWith(next, words));
  });

  it("tells the key and the owner in short wherever it is cut, and never a part as the whole", () => {
    const written = descriptionWith(stamp, "");
    for (let length = `[${stamp.short}`.length; length < written.length; length += 1) {
      const read = readStamp(written.slice(0, length));
      assert.deepEqual(read, { ...stamp, key: "", cluster: "", uid: "", specHash: "" });
    }
    assert.equal(readStamp(written.slice(0, stamp.short.length)), undefined);
  });

  it("does not count in its long form where that leads to another key", () => {
    const forged = descriptionWith(stamp, "").replace("key=fleet/ns/name", "key=fleet/ns/other");
    assert.equal(readStamp(forged)?.key, "");
    assert.equal(readStamp("a persona of somebody's"), undefined);
  });
});
