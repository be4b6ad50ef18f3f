/** A server that stops while calls are in flight, and what stands in its place. */
import { create } from "@bufbuild/protobuf";

import {
  DescribeResponseSchema,
  EnsureResponseSchema,
  WatchHealthResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderHandlers } from "../../services/contract/provider-handlers.ts";
import {
  answerIn,
  failureIn,
  named,
  until,
  wireRule,
  wordsOf,
  wordsOfBroken,
} from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";

interface Slow {
  readonly handlers: ProviderHandlers;
  readonly seen: { begun: number };
  readonly open: () => void;
}

/** Ensure waits until `open`; Describe answers at once. */
function slow(): Slow {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const seen = { begun: 0 };
  return {
    seen,
    open,
    handlers: {
      ensure: async () => {
        seen.begun += 1;
        await gate;
        return create(EnsureResponseSchema, { instance: { providerId: "done" } });
      },
      describe: () => Promise.resolve(create(DescribeResponseSchema)),
    },
  };
}

async function begin(run: WireRun, count: number) {
  const parts = slow();
  const server = await run.serve(parts.handlers);
  const end = run.connect(server.port);
  const calls = Array.from({ length: count }, () => end.ensure(named));
  await until(() => parts.seen.begun === count);
  return { ...parts, server, end, calls };
}

wireRule(
  "GOAWAY lets calls in flight finish, and who comes newly is told SHUTTING_DOWN",
  {
    both: [
      ["done", "done", "done"],
      ["UNAVAILABLE", "SHUTTING_DOWN", "NOT_APPLIED"],
    ],
  },
  async (run) => {
    const { server, calls, open } = await begin(run, 3);
    const drained = server.drain(10_000);
    const newcomer = wordsOf(await run.connect(server.port).ensure(named));
    open();
    const ids = (await Promise.all(calls)).map((heard) => answerIn(heard).instance?.providerId);
    await drained;
    return [ids, newcomer];
  },
);

wireRule(
  "a call that crosses GOAWAY on its way is told SHUTTING_DOWN",
  {
    "grpc-js": ["told", "told"],
    "connect-node": ["told or lost", "told"],
    because:
      "grpc-js sends again what the server refused unseen; connect-node may lose it without a word, and comes back with the next",
  },
  async (run) => {
    const { server, end, calls, open } = await begin(run, 1);
    const drained = server.drain(10_000);
    const crossing = wordsOf(await end.ensure(named));
    const next = wordsOf(await end.ensure(named));
    open();
    await Promise.all([drained, ...calls]);
    const isTold = ([, reason]: readonly unknown[]): boolean => reason === "SHUTTING_DOWN";
    const isLost = crossing[0] === "INTERNAL" && run.library === "connect-node";
    const first = isTold(crossing) ? "told" : crossing;
    const mayBeLost = run.library === "connect-node" && (isLost || isTold(crossing));
    return [mayBeLost ? "told or lost" : first, isTold(next) ? "told" : next];
  },
);

wireRule(
  "when a drained server has gone, its successor on the port answers the next call",
  { both: ["UNAVAILABLE", "answer"] },
  async (run) => {
    const { server, end, calls, open } = await begin(run, 1);
    const drained = server.drain(10_000);
    open();
    await Promise.all([drained, ...calls]);
    await server.close();
    const { code } = failureIn(await end.describe(named));
    await run.serve(slow().handlers, { port: server.port });
    let heard = await end.describe(named);
    // Connecting again may take a back-off.
    for (let tries = 0; heard.kind === "failure" && tries < 200; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      heard = await end.describe(named);
    }
    return [code, heard.kind];
  },
);

wireRule(
  "a call that the drain time cuts off is told so, and its change is in doubt",
  { both: ["UNAVAILABLE", "SHUTTING_DOWN", "UNKNOWN"] },
  async (run) => {
    let isBegun = false;
    const server = await run.serve({
      ensure: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          isBegun = true;
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    const call = run.connect(server.port).ensure(named);
    await until(() => isBegun);
    await server.drain(50);
    return wordsOf(await call);
  },
);

wireRule(
  "a connection that breaks under a change leaves it in doubt",
  {
    "grpc-js": ["UNAVAILABLE", undefined, undefined],
    "connect-node": [undefined, undefined],
    because: "connect-node has other codes for it; neither has a word on the change",
  },
  async (run) => {
    const { server, calls, open } = await begin(run, 1);
    await server.close();
    open();
    const [heard] = await Promise.all(calls);
    return heard && wordsOfBroken(run.library, heard);
  },
);

wireRule(
  "health streams end at once when the server drains, with its reason",
  { both: ["answer", ["UNAVAILABLE", "SHUTTING_DOWN"]] },
  async (run) => {
    const server = await run.serve({
      watchHealth: async function* (_request, { signal }) {
        yield create(WatchHealthResponseSchema);
        await new Promise((end) => signal.addEventListener("abort", end));
      },
    });
    const end = run.connect(server.port);
    const heard: unknown[] = [];
    for await (const one of end.watchHealth({}, new AbortController().signal)) {
      heard.push(one.kind === "answer" ? one.kind : wordsOf(one).slice(0, 2));
      if (one.kind === "answer") void server.drain(10_000);
    }
    return heard;
  },
);
