import assert from "node:assert/strict";
import { test } from "node:test";

import { isApiError } from "./api-error.ts";
import { parseJsonLines } from "./json-lines.ts";

const text = '{"name":"杭州文字转语音"}\n\n{"n":2}\n';

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) {
    yield bytes.subarray(start, start + size);
  }
}

async function parse(input: string, size: number, lineBytesMax = 1_000): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of parseJsonLines(chunksOf(Buffer.from(input), size), lineBytesMax)) {
    values.push(value);
  }
  return values;
}

test("lines are the same wherever the bytes are cut, inside characters too", async () => {
  for (let size = 1; size <= Buffer.byteLength(text); size += 1) {
    assert.deepEqual(await parse(text, size), [{ name: "杭州文字转语音" }, { n: 2 }]);
  }
});

test("a last line without line feed counts as cut", async () => {
  assert.deepEqual(await parse('{"n":1}\n{"n":2}', 3), [{ n: 1 }]);
});

test("a line of the limit passes, one byte more is refused, before or after its end", async () => {
  const line = `"${"x".repeat(8)}"\n`;
  assert.deepEqual(await parse(line, 4, 10), ["xxxxxxxx"]);
  const isRefused = (error: unknown): boolean => isApiError(error, "unreadable");
  await assert.rejects(parse(line, 4, 9), isRefused);
  await assert.rejects(parse(line, 100, 9), isRefused);
  await assert.rejects(parse("x".repeat(20), 4, 9), isRefused);
});
