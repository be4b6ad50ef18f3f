/** Messages up to 4 MiB pass either way, byte for byte; one byte more fails with a code. */
import { create, toBinary } from "@bufbuild/protobuf";

import {
  EnsureRequestSchema,
  EnsureResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureRequest } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { defaultServerLimits } from "../../services/contract/server.ts";
import { answerIn, failed, failureIn, wireRule } from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";

const limitBytes = defaultServerLimits.messageBytesMax;

/** A request of exactly so many bytes, none of them ASCII. */
function requestOf(bytes: number): EnsureRequest {
  const empty = toBinary(EnsureRequestSchema, create(EnsureRequestSchema, { specHash: "x" }));
  // Tag, four bytes of length, text.
  const textBytes = bytes - empty.length - 2;
  const specHash = "é".repeat(Math.floor(textBytes / 2)) + "x".repeat(textBytes % 2);
  return create(EnsureRequestSchema, { specHash });
}

/** Answers with a text of so many characters, in a message that is `around` bytes longer. */
async function serveSizes(run: WireRun, messageBytesMax = limitBytes) {
  const seen = { calls: 0, specHashLength: 0 };
  const { port } = await run.serve(
    {
      ensure: ({ specHash, instanceKey }) => {
        seen.calls += 1;
        seen.specHashLength = specHash.length;
        const text = "x".repeat(Number(instanceKey));
        return Promise.resolve(create(EnsureResponseSchema, { instance: { specHash: text } }));
      },
    },
    { limits: { messageBytesMax } },
  );
  return { seen, end: run.connect(port) };
}

/** Characters of the text that makes an answer so long: two tags, two lengths of four bytes. */
function textIn(answerBytes: number): number {
  return answerBytes - 10;
}

wireRule("a request of exactly 4 MiB passes", { both: [limitBytes, true] }, async (run) => {
  const { end, seen } = await serveSizes(run);
  const request = requestOf(limitBytes);
  answerIn(await end.ensure(request));
  const sent = toBinary(EnsureRequestSchema, request).length;
  return [sent, seen.specHashLength === request.specHash.length];
});

wireRule(
  "a request of one byte more fails, and no handler sees it",
  {
    "grpc-js": [failed("INVALID_ARGUMENT", { outcome: "NOT_APPLIED" }), 0],
    "connect-node": [failed("RESOURCE_EXHAUSTED"), 0],
    because: "our client counts before it sends; a stranger's is stopped by the server's library",
  },
  async (run) => {
    const { end, seen } = await serveSizes(run);
    return [failureIn(await end.ensure(requestOf(limitBytes + 1))), seen.calls];
  },
);

wireRule("an answer of exactly 4 MiB passes", { both: limitBytes }, async (run) => {
  const { end } = await serveSizes(run);
  const answer = answerIn(await end.ensure({ instanceKey: `${textIn(limitBytes)}` }));
  return toBinary(EnsureResponseSchema, answer).length;
});

wireRule(
  "an answer of one byte more is INTERNAL, and the change that it told of is in doubt",
  { both: failed("INTERNAL", { outcome: "UNKNOWN" }) },
  async (run) => {
    const { end } = await serveSizes(run);
    return failureIn(await end.ensure({ instanceKey: `${textIn(limitBytes + 1)}` }));
  },
);

wireRule(
  "an answer beyond the client's own limit is refused by the client",
  {
    "grpc-js": failed("RESOURCE_EXHAUSTED"),
    "connect-node": "answered",
    because:
      "our client takes 4 MiB from anybody; connect-node takes what its user allows, here all",
  },
  async (run) => {
    const { end } = await serveSizes(run, limitBytes * 2);
    const heard = await end.ensure({ instanceKey: `${textIn(limitBytes + 1)}` });
    return heard.kind === "answer" ? "answered" : heard.failure;
  },
);

wireRule(
  "the connection serves on after a message that was too large",
  { both: "answer" },
  async (run) => {
    const { end } = await serveSizes(run);
    await end.ensure(requestOf(limitBytes + 1));
    await end.ensure({ instanceKey: `${textIn(limitBytes + 1)}` });
    return (await end.ensure({ instanceKey: "1" })).kind;
  },
);
