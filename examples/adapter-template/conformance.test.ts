/** The whole conformance suite against this adapter's process, in front of the vendor's emulator. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startVendorEmulator } from "../../services/vendor-emulator/emulator.ts";
import { startEmulatedRig } from "../../test/conformance/rigs/emulated-rig.ts";
import { wholeRun } from "../../test/conformance/rigs/whole-run.ts";
import { AcmeModel, apiHosts, emulatorApiKey } from "./emulator.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

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
    // The suite holds a list back for 1.5 s, which has to be no time-out.
    flags: ["--read-timeout=2s", "--circuit-open=1s", "--sweep-interval=1s"],
  });
  try {
    const { parameters, vendorFaultsUrl } = rig;
    const { report, failedNames } = await wholeRun(context, { parameters, vendorFaultsUrl });
    context.diagnostic(`${report.passed} passed, ${report.skipped} skipped`);
    assert.deepEqual(failedNames, []);
    assert.ok(report.isComplete);
  } finally {
    await rig.stop();
  }
});
