import assert from "node:assert/strict";
import { test } from "node:test";
import { createProgressPrinter } from "./build-progress.ts";
import type { BuildProgress } from "./cached-build.ts";

test("without a terminal a build prints its start, a line each 15 s and its end", () => {
  const written = print(false, [
    building(0, 0),
    building(1_000, 3),
    building(14_999, 90),
    building(15_000, 91),
    building(75_000, 400),
    { kind: "built", name: "cluster", elapsedMs: 76_000 },
  ]);
  assert.equal(
    written,
    "building cluster (once): 0 s, 0 packages compiled\n" +
      "building cluster (once): 15 s, 91 packages compiled\n" +
      "building cluster (once): 1 min 15 s, 400 packages compiled\n" +
      "built cluster in 1 min 16 s\n",
  );
});

test("on a terminal one line counts up", () => {
  const written = print(true, [
    { kind: "waiting", name: "kubectl", elapsedMs: 0, holder: "" },
    building(1_000, 3),
    { kind: "built", name: "cluster", elapsedMs: 2_000 },
  ]);
  assert.equal(
    written,
    "\r\u001B[Kwaiting for another process that builds kubectl: 0 s" +
      "\r\u001B[Kbuilding cluster (once): 1 s, 3 packages compiled" +
      "\r\u001B[Kbuilt cluster in 2 s\n",
  );
});

function building(elapsedMs: number, packages: number): BuildProgress {
  return { kind: "building", name: "cluster", elapsedMs, packages };
}

function print(isTTY: boolean, events: readonly BuildProgress[]): string {
  let written = "";
  const onProgress = createProgressPrinter({ isTTY, write: (text) => (written += text) });
  for (const event of events) onProgress(event);
  return written;
}
