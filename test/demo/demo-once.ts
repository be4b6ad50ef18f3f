/** The demo without a person: create, wait, touch, edit, delete, look at the vendors. */
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import type { Stack } from "../support/stack.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { applySamples, readRows, roomCount, voiceCount, watchUntilReady } from "./demo-objects.ts";

const stepLimitMs = 20_000;

export interface DemoParts {
  readonly stack: Stack;
  readonly voices: ElevenLabs;
}

/** Exit code: 0 when every step held, 1 with a line that says which did not. */
export async function runOnce(parts: DemoParts, startedMs: number): Promise<number> {
  const { stack } = parts;
  try {
    await step("create five objects at two vendors and wait until they are Ready", async () => {
      await applySamples(stack);
      await watchUntilReady(stack, new AbortController().signal);
      await expectInstances(parts, roomCount, voiceCount);
    });
    await step("touch one three times: still one instance each", async () => {
      for (const count of [1, 2, 3]) {
        await kubectl(stack, "annotate", "dhp", "aliyun-tts", "--overwrite", `touched=${count}`);
      }
      await expectInstances(parts, roomCount, voiceCount);
    });
    await step("edit one: Ready again, observedGeneration follows, same room", () => edit(stack));
    await step("delete all: objects, rooms and agents are gone", async () => {
      await kubectl(stack, "delete", "dhp", "--all", "-A", `--timeout=${stepLimitMs / 1000}s`);
      await expectInstances(parts, 0, 0);
    });
  } catch (error) {
    console.error(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
    console.error(`controller's last words:\n${stack.controller.output()}`);
    return 1;
  }
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`all steps held; nothing is left at either vendor (${seconds.toFixed(1)} s)`);
  return 0;
}

async function step(what: string, run: () => Promise<void>): Promise<void> {
  console.log(`- ${what}`);
  try {
    await run();
  } catch (cause) {
    throw new Error(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}

async function edit(stack: Stack): Promise<void> {
  const before = (await readRows(stack)).find(({ name }) => name === "morning-show");
  const patch = JSON.stringify({ spec: { displayName: "Morning show, new season" } });
  await kubectl(stack, "patch", "dhp", "morning-show", "--type=merge", "-p", patch);
  await eventually(async () => {
    const after = (await readRows(stack)).find(({ name }) => name === "morning-show");
    const isFollowed = after !== undefined && after.observedGeneration === after.generation;
    if (!isFollowed || after.generation === before?.generation || after.ready !== "True") {
      throw new Error(`not Ready for the new generation: ${JSON.stringify(after)}`);
    }
    if (after.providerID !== before?.providerID) throw new Error("the room was replaced");
  }, stepLimitMs);
}

async function expectInstances(parts: DemoParts, rooms: number, agents: number): Promise<void> {
  await eventually(async () => {
    const found = {
      rooms: (await listRooms(parts.stack.livekit)).length,
      agents: (await parts.voices.agents()).length,
    };
    if (found.rooms === rooms && found.agents === agents) return;
    throw new Error(
      `LiveKit has ${found.rooms} rooms instead of ${rooms}, ElevenLabs ${found.agents} agents instead of ${agents}`,
    );
  }, stepLimitMs);
}

async function kubectl(stack: Stack, ...args: string[]): Promise<string> {
  return expectDone(await stack.cluster.kubectl(args));
}
