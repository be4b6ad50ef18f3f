/** The whole conformance suite against this adapter's process, in front of the vendor's emulator. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { relative } from "node:path";

import { startVendorEmulator } from "../../services/vendor-emulator/emulator.ts";
import { allCases } from "../../test/conformance/cases/all.ts";
import { runConformance } from "../../test/conformance/core/conformance-run.ts";
import { resultLines } from "../../test/conformance/core/report-text.ts";
import { startEmulatedRig } from "../../test/conformance/rigs/emulated-rig.ts";
import { AcmeModel, apiHosts, emulatorApiKey } from "./emulator.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const main = relative(root, fileURLToPath(new URL("main.ts", import.meta.url)));

test("the adapter keeps every promise of the contract", { timeout: 300_000 }, async (context) => {
  const emulator = await startVendorEmulator(new AcmeModel());
  const rig = await startEmulatedRig({
    main,
    emulator,
    hosts: apiHosts,
    credential: { apiKey: emulatorApiKey },
    wrongCredential: { apiKey: "a-key-that-nobody-has" },
    parameters: {
      parameters: { voice: "calm", speed: "1" },
      changed: { speed: "1.5" },
      invalid: { speed: "fast" },
    },
    flags: ["--read-timeout=1s", "--circuit-open=1s", "--sweep-interval=1s"],
  });
  try {
    const { parameters, vendorFaultsUrl } = rig;
    const report = await runConformance({ parameters, vendorFaultsUrl, cases: allCases });
    const failed = report.results.filter(({ kind }) => kind === "failed");
    for (const result of failed) context.diagnostic(resultLines(result));
    assert.deepEqual(
      failed.map((result) => result.case.name),
      [],
    );
  } finally {
    await rig.stop();
  }
});
