/**
 * The contract's table of errors, row by row and from end to end: ElevenLabs' bytes, the status and
 * details that they become on gRPC, and the conditions that the controller publishes.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { reasons } from "../../services/contract/provider-error.ts";
import type { ProviderError } from "../../services/contract/provider-error.ts";
import type { ReconcileResult } from "../../controller/reconcile/reconciler.ts";
import type { ErrorRow, WireError } from "./error-row.ts";
import { hostErrorRows } from "./host-error-rows.ts";
import { vendorErrorRows } from "./vendor-error-rows.ts";
import { VendorLine } from "./vendor-line.ts";

const rows = [...vendorErrorRows, ...hostErrorRows];
/** Waits of the controller's options: re-probe, and the longest back-off after a few failures. */
const reprobeMs = 300_000;
const backOffMsMax = 10_000;

let shared: VendorLine;
let count = 0;

before(async () => {
  shared = await VendorLine.start();
});
after(() => shared.stop());

describe("the contract's table of errors", () => {
  for (const row of rows) {
    it(`${row.says}: ${row.vendor}`, async () => {
      const line = row.line === undefined ? shared : await VendorLine.start(row.line);
      try {
        await walk(line, row);
      } finally {
        await line.bench.script({ do: "clear-faults" });
        if (line !== shared) await line.stop();
      }
    });
  }

  it("has a row for every reason", () => {
    // Made by the controller itself, of what GetProviderInfo says.
    const told = new Set(["CONTRACT_VERSION", ...rows.map(({ wire }) => wire?.reason)]);
    assert.deepEqual(
      reasons.filter((reason) => !told.has(reason)),
      [],
    );
  });
});

async function walk(line: VendorLine, row: ErrorRow): Promise<void> {
  const { object = "new", spec, arrange, wire, conditions, message } = row;
  count += 1;
  const key = line.apply(`row-${count}`, spec);
  if (object !== "new") {
    await line.pass(key);
    assert.equal(brief(line, key, "Ready"), "True ProviderReady");
  }
  if (object === "deleted") line.objects.delete(key);
  await arrange?.(line, key);
  line.errors.length = 0;
  const result = await line.forcedPass(key);
  assertWire(line.errors, wire);
  if (conditions === undefined) assert.equal(line.objects.get(key), undefined, "it is still there");
  for (const [type, expected] of Object.entries(conditions ?? {})) {
    assert.equal(brief(line, key, type), expected, `${type}: ${line.condition(key, type).message}`);
  }
  if (message !== undefined) assert.match(line.condition(key, "Ready").message, message);
  await assertNext(line, row, { key, result });
}

function brief(line: VendorLine, key: string, type: string): string {
  const { status, reason } = line.condition(key, type);
  return `${status} ${reason}`;
}

function assertWire(errors: readonly ProviderError[], wire: WireError | undefined): void {
  const error = errors.at(-1);
  if (wire === undefined) {
    // Before a create the vendor attests that there is none.
    assert.ok(errors.every(({ reason }) => reason === "NOT_FOUND"));
    return;
  }
  assert.ok(error, "no error came over the wire");
  assert.deepEqual([error.code, error.reason], [wire.code, wire.reason], error.message);
  if (wire.outcome !== undefined) assert.equal(error.facts.outcome, wire.outcome);
  for (const name of wire.details ?? []) {
    assert.notEqual(error.facts[name], undefined, `no detail tells ${name}`);
  }
}

async function assertNext(
  line: VendorLine,
  { next }: ErrorRow,
  { key, result }: { readonly key: string; readonly result: ReconcileResult },
): Promise<void> {
  if (next === "no failure") {
    assert.notEqual(result.kind, "failed");
    return;
  }
  assert.ok(result.kind === "failed", `the pass did not fail: ${result.kind}`);
  assert.equal(result.isTerminal, next === "slowly");
  if (next === "slowly") assert.equal(Math.round(result.afterMs), reprobeMs);
  if (next === "back-off") assert.ok(result.afterMs < backOffMsMax, String(result.afterMs));
  if (next !== "not before") return;
  assert.ok(result.afterMs > 0);
  const requests = (await line.bench.requests()).length;
  line.objects.editSpec(key, { displayName: "changed meanwhile" });
  await line.forcedPass(key);
  assert.equal((await line.bench.requests()).length, requests, "the vendor was asked too early");
}
