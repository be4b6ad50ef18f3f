/** WatchHealth: in order, to its end or its error, and no faster than it is read. */
import { create } from "@bufbuild/protobuf";

import { WatchHealthResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { answerIn, failed, named, wireRule } from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";
import type { WireEnd } from "./wire-end.ts";

function heartbeat(message: string) {
  const value = { targets: [{ message }] };
  return create(WatchHealthResponseSchema, { event: { case: "heartbeat", value } });
}

/** Words of all heartbeats, then how the stream ended. */
async function heardAt(end: WireEnd, ownerCluster = ""): Promise<readonly unknown[]> {
  const heard: unknown[] = [];
  for await (const one of end.watchHealth({ ownerCluster }, new AbortController().signal)) {
    heard.push(one.kind === "answer" ? wordsIn(one.answer) : one.failure);
  }
  return heard;
}

function wordsIn({ event }: ReturnType<typeof heartbeat>): string {
  return event.case === "heartbeat" ? (event.value.targets[0]?.message ?? "") : "no heartbeat";
}

const words = Array.from({ length: 500 }, (_, index) => `${index} 心跳`);

async function serveWords(run: WireRun): Promise<WireEnd> {
  const { port } = await run.serve({
    watchHealth: async function* ({ ownerCluster }) {
      for (const word of words) yield heartbeat(word);
      if (ownerCluster === "bug") throw new TypeError("secret-of-the-bug");
      if (ownerCluster !== "fail") return;
      throw new ProviderError("BAD_CREDENTIAL", "401", { realm: "r", retryAfterMs: 2_000 });
    },
  });
  return run.connect(port);
}

wireRule(
  "messages arrive in order; an adapter that ends its stream is an error to our client",
  {
    "grpc-js": [...words, failed("UNAVAILABLE")],
    "connect-node": words,
    because: "a stream of health lasts until its reader leaves, and ours says so when it does not",
  },
  async (run) => heardAt(await serveWords(run)),
);

wireRule(
  "an error after messages comes after all of them, with its details",
  {
    both: [
      ...words,
      failed("UNAUTHENTICATED", {
        message: "401",
        reason: "BAD_CREDENTIAL",
        realm: "r",
        retryAfterMs: 2_000,
      }),
    ],
  },
  async (run) => heardAt(await serveWords(run), "fail"),
);

wireRule(
  "a bug after messages is INTERNAL and tells nothing of itself",
  { both: [...words, failed("INTERNAL")] },
  async (run) => heardAt(await serveWords(run), "bug"),
);

const bigBytes = 50_000;
const manyMessages = 2_000;

wireRule(
  "a slow reader slows the adapter, and loses nothing",
  { both: ["held back", manyMessages, true] },
  async (run) => {
    let produced = 0;
    const { port } = await run.serve({
      watchHealth: async function* () {
        for (; produced < manyMessages; produced += 1) {
          yield heartbeat(`${produced} ${"x".repeat(bigBytes)}`);
        }
        await new Promise(() => undefined);
      },
    });
    const end = run.connect(port);
    const leaving = new AbortController();
    const stream = end.watchHealth({}, leaving.signal);
    let isInOrder = true;
    let readCount = 0;
    const read = async (): Promise<void> => {
      const next = await stream.next();
      if (next.done === true) throw new Error("the stream ended");
      isInOrder &&= wordsIn(answerIn(next.value)).startsWith(`${readCount} `);
      readCount += 1;
    };
    await read();
    // Quiet once the windows are full: other calls on the connection go on meanwhile.
    for (let before = -1; before !== produced;) {
      before = produced;
      for (let calls = 0; calls < 20; calls += 1) await end.describe(named);
    }
    const isHeldBack = produced < manyMessages / 2 ? "held back" : produced;
    for (let left = manyMessages - 1; left > 0; left -= 1) await read();
    leaving.abort();
    await stream.next();
    return [isHeldBack, readCount, isInOrder];
  },
);
