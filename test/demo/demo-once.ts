/** The demo without a person: create, wait, touch, edit, delete, look at LiveKit. */
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import type { Stack } from "../support/stack.ts";
import { applySamples, readRows, sampleNames, watchUntilReady } from "./demo-objects.ts";

const stepLimitMs = 20_000;

/** Exit code: 0 when every step held, 1 with a line that says which did not. */
export async function runOnce(stack: Stack, startedMs: number): Promise<number> {
  try {
    await step("create three objects and wait until they are Ready", async () => {
      await applySamples(stack);
      await watchUntilReady(stack, new AbortController().signal);
      await expectRooms(stack, sampleNames.length);
    });
    await step("touch one three times: still one room each", async () => {
      for (const count of [1, 2, 3]) {
        await kubectl(stack, "annotate", "dhp", "aliyun-tts", "--overwrite", `touched=${count}`);
      }
      await expectRooms(stack, sampleNames.length);
    });
    await step("edit one: Ready again, observedGeneration follows, same room", () => edit(stack));
    await step("delete all: objects and rooms are gone", async () => {
      await kubectl(stack, "delete", "dhp", "--all", "-A", `--timeout=${stepLimitMs / 1000}s`);
      await expectRooms(stack, 0);
    });
  } catch (error) {
    console.error(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
    console.error(`controller's last words:\n${stack.controller.output()}`);
    return 1;
  }
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`all steps held; nothing is left at LiveKit (${seconds.toFixed(1)} s)`);
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

async function expectRooms(stack: Stack, count: number): Promise<void> {
  await eventually(async () => {
    const rooms = await listRooms(stack.livekit);
    if (rooms.length === count) return;
    const names = rooms.map(({ name }) => name).join(", ");
    throw new Error(`LiveKit has ${rooms.length} rooms instead of ${count}: ${names}`);
  }, stepLimitMs);
}

async function kubectl(stack: Stack, ...args: string[]): Promise<string> {
  return expectDone(await stack.cluster.kubectl(args));
}
