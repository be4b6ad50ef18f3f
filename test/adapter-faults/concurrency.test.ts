/** The contract's rule that calls on one key never overlap, with real adapters before their vendors. */
import { after, before, describe, it } from "node:test";

import { startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { againstRound, manyKeysRound, oneKeyRound } from "./concurrency-rounds.ts";
import { readFaultRounds } from "./fault-rounds-options.ts";
import { elevenLabsFront, startLiveKitFront } from "./vendor-front.ts";
import type { LiveKitFront, VendorFront } from "./vendor-front.ts";

const { rounds, wideRounds } = readFaultRounds();

let livekit: LiveKitFront;
let elevenLabs: ElevenLabs;
let elevenLabsCalls: VendorFront;

before(async () => {
  livekit = await startLiveKitFront();
  elevenLabs = await startElevenLabs();
  elevenLabsCalls = elevenLabsFront(elevenLabs);
});
after(async () => {
  await livekit.stop();
  elevenLabsCalls.close();
  await elevenLabs.stop();
});

const fronts: readonly (readonly [string, () => VendorFront])[] = [
  ["LiveKit", () => livekit.front],
  ["ElevenLabs", () => elevenLabsCalls],
];

for (const [name, front] of fronts) {
  describe(`at ${name}`, () => {
    it(`twenty Ensures at once on one key make one instance, ${rounds} times`, async () => {
      for (let round = 0; round < rounds; round += 1) {
        await oneKeyRound(front(), `fleet/one/${name}-${round}`);
      }
    });

    it(`Ensure against Delete ends in one state, ${rounds} times`, async () => {
      for (let round = 0; round < rounds; round += 1) {
        await againstRound(front(), `fleet/against/${name}-${round}`, round);
      }
    });

    it(`two hundred keys at once make two hundred, ${wideRounds} times`, async () => {
      for (let round = 0; round < wideRounds; round += 1) {
        await manyKeysRound(front(), `fleet/many/${name}-${round}`);
      }
    });
  });
}
