/** The whole suite against the adapter in Go: the contract has no need of TypeScript. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { parrotEndpoint } from "../support/go-adapter.ts";
import { parseParameters } from "./core/parameters.ts";
import { wholeRun } from "./rigs/whole-run.ts";

test(
  "the adapter in Go keeps every promise of the contract",
  { timeout: 300_000 },
  async (context) => {
    const folder = await mkdtemp(join(tmpdir(), "dhp-conformance-go-"));
    const program = await ensureBinary("adapter-go");
    const document = {
      target: { endpoint: parrotEndpoint, region: "eu" },
      otherRealm: { endpoint: parrotEndpoint, region: "us" },
      parameters: { voice: "alto", speed: "1", language: "de" },
      changed: { voice: "bass" },
      immutable: { language: "en" },
      invalid: { voice: "soprano" },
      normalised: { speed: "1.00" },
      start: [program, "--listen=127.0.0.1:{port}", `--vendor-file=${join(folder, "parrot.json")}`],
    };
    try {
      const parameters = parseParameters(document, "parameters of the adapter in Go");
      const { report, failedNames } = await wholeRun(context, { parameters });
      assert.deepEqual(failedNames, []);
      assert.ok(report.isComplete);
      assert.ok(report.passed >= 85, `only ${report.passed} cases ran`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
