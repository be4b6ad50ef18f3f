/** The whole conformance suite against this adapter's process, in front of the vendor's emulator. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startVendorEmulator } from "../../services/vendor-emulator/emulator.ts";
import { startEmulatedRig } from "../../test/conformance/rigs/emulated-rig.ts";
import type { EmulatedRig } from "../../test/conformance/rigs/emulated-rig.ts";
import { wholeRun } from "../../test/conformance/rigs/whole-run.ts";
import { anamAdapter } from "./adapter.ts";
import { avatarIds, voiceIds } from "./emulator-persona.ts";
import { AnamModel, apiHosts, emulatorApiKey } from "./emulator.ts";
import type { Unknowns } from "./emulator.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

/** The other answer to each question that Anam leaves open. */
const otherwise: Partial<Unknowns> = {
  errorBody: "empty",
  form: "flat",
  order: "newest-first",
  // Enough for the short form of a stamp, and not for the long one.
  descriptionCharactersMax: 60,
  trimsTexts: true,
};

async function startRig(model: AnamModel): Promise<EmulatedRig> {
  return startEmulatedRig({
    main,
    emulator: await startVendorEmulator(model),
    hosts: apiHosts,
    credential: { apiKey: emulatorApiKey, organization: "first" },
    wrongCredential: { apiKey: "a-key-that-nobody-has", organization: "first" },
    publicCredentialFields: anamAdapter.info.publicCredentialFields ?? [],
    parameters: {
      parameters: {
        avatarId: avatarIds[0],
        voiceId: voiceIds[0],
        systemPrompt: "You read the news.",
        skipGreeting: "false",
      },
      changed: { systemPrompt: "You read the weather.", voiceId: voiceIds[1] },
      invalid: { skipGreeting: "perhaps" },
    },
    flags: ["--read-timeout=2s", "--circuit-open=1s", "--sweep-interval=1s"],
  });
}

test("the adapter keeps every promise of the contract", { timeout: 300_000 }, async (context) => {
  const rig = await startRig(new AnamModel());
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

test(
  "it keeps them too where Anam turns out to be otherwise in all that is not known",
  { timeout: 120_000 },
  async (context) => {
    const rig = await startRig(new AnamModel(otherwise));
    try {
      const { parameters, vendorFaultsUrl } = rig;
      const only = [
        "ensure/ten-times",
        "ensure/changed",
        "removal/again",
        "removal/ends",
        "release/takes",
        "list/comings",
        "vendor-errors/wrong-path",
        "vendor-errors/delete-wrong-path",
        "identity/",
      ];
      const { failedNames } = await wholeRun(context, { parameters, vendorFaultsUrl, only });
      assert.deepEqual(failedNames, []);
    } finally {
      await rig.stop();
    }
  },
);
