/** What answers is no adapter, an older one, or nobody. Nothing of it looks like an adapter's word. */
import { createServer as createHttp2Server } from "node:http2";
import { connectNodeAdapter } from "@connectrpc/connect-node";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { proxyPage, rubbishServers, startRaw } from "../faults/rubbish-servers.ts";
import { failed, failureIn, named, wireRule, wordsOf, wordsOfBroken } from "./wire-rule.ts";
import type { Expected, WireRun } from "./wire-rule.ts";

const unsent = { outcome: "NOT_APPLIED" } as const;

async function ensureAt(run: WireRun, server: Parameters<typeof startRaw>[0]): Promise<unknown> {
  const raw = await startRaw(server);
  run.closeAtEnd(() => raw.stop());
  return failureIn(await run.connect(raw.port).ensure(named, { deadlineMs: 8_000 }));
}

const statuses: readonly (readonly [number, string])[] = [
  [400, "INTERNAL"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "UNIMPLEMENTED"],
  [429, "UNAVAILABLE"],
  [500, "UNKNOWN"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "UNAVAILABLE"],
];

for (const [status, code] of statuses) {
  wireRule(
    `a proxy's page with ${status} is ${code} with no word on the change`,
    { both: failed(code) },
    (run) => ensureAt(run, proxyPage(status)),
  );
}

wireRule(
  "a page with 200 is no answer",
  {
    "grpc-js": failed("RESOURCE_EXHAUSTED"),
    "connect-node": failed("UNKNOWN"),
    because:
      "grpc-js reads any body as messages, and the first letters of a page as a huge length; without a reason either is the same to the controller",
  },
  (run) => ensureAt(run, proxyPage(200)),
);

const unmade: Expected = {
  "grpc-js": ["UNAVAILABLE", undefined, "NOT_APPLIED"],
  "connect-node": [undefined, undefined],
  because: "our client sends only on a connection that stands, and knows that this one never did",
};

/** Those that speak HTTP/2 are answers of a kind; the others never get so far. */
const expectedOf: Readonly<Record<string, Expected>> = {
  "HTML over HTTP/1": unmade,
  "a gRPC message of noise": { both: ["INTERNAL", undefined, undefined] },
  "by hanging up": unmade,
  "noise before it was asked": unmade,
};

for (const [what, open] of rubbishServers) {
  const expected = expectedOf[what];
  if (expected === undefined) continue;
  wireRule(`a peer that answers ${what} says nothing of the change`, expected, async (run) => {
    const raw = await startRaw(open());
    run.closeAtEnd(() => raw.stop());
    const heard = await run.connect(raw.port).ensure(named, { deadlineMs: 8_000 });
    return expected === unmade ? wordsOfBroken(run.library, heard) : wordsOf(heard);
  });
}

wireRule(
  "a port where nobody listens is UNAVAILABLE, for a change and for a look",
  {
    "grpc-js": [failed("UNAVAILABLE", unsent), failed("UNAVAILABLE")],
    "connect-node": [failed("UNAVAILABLE"), failed("UNAVAILABLE")],
    because: "our client knows that the change was not sent and says so",
  },
  async (run) => {
    const server = await run.serve({});
    await server.close();
    const end = run.connect(server.port);
    return [failureIn(await end.ensure(named)), failureIn(await end.describe(named))];
  },
);

wireRule(
  "an RPC without a handler is UNIMPLEMENTED, UNSUPPORTED, and changed nothing",
  {
    both: [
      ["UNIMPLEMENTED", "UNSUPPORTED", "NOT_APPLIED"],
      ["UNIMPLEMENTED", "UNSUPPORTED", "NOT_APPLIED"],
      ["UNIMPLEMENTED", "UNSUPPORTED", "NOT_APPLIED"],
    ],
  },
  async (run) => {
    const end = run.connect((await run.serve({})).port);
    const heard: unknown[] = [wordsOf(await end.ensure(named)), wordsOf(await end.describe(named))];
    for await (const one of end.watchHealth({}, new AbortController().signal)) {
      heard.push(wordsOf(one));
    }
    return heard;
  },
);

/** An adapter of another library, which knows GetProviderInfo and Ensure alone. */
function olderAdapter(): Parameters<typeof startRaw>[0] {
  const handler = connectNodeAdapter({
    connect: false,
    grpcWeb: false,
    routes: ({ rpc }) => {
      rpc(ProviderAPI.method.getProviderInfo, () => ({ name: "older" }));
      rpc(ProviderAPI.method.ensure, () => ({ instance: { providerId: "made" } }));
    },
  });
  return createHttp2Server({}, handler);
}

wireRule(
  "an adapter that does not know a method says UNIMPLEMENTED without details; others answer",
  { both: ["older", failed("UNIMPLEMENTED"), failed("UNIMPLEMENTED")] },
  async (run) => {
    const raw = await startRaw(olderAdapter());
    run.closeAtEnd(() => raw.stop());
    const end = run.connect(raw.port);
    const info = await end.getProviderInfo({});
    const name = info.kind === "answer" ? info.answer.name : info.failure;
    return [name, failureIn(await end.describe(named)), failureIn(await end.delete(named))];
  },
);
