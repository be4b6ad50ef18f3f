/** Deadlines: told to the server as they are, and the end of the call; never of what was sent. */
import { create } from "@bufbuild/protobuf";

import {
  Change,
  DescribeResponseSchema,
  GetProviderInfoResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import {
  answerIn,
  failed,
  failureIn,
  named,
  until,
  wished,
  wireRule,
  wordsOf,
} from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";

const monthMs = 31 * 86_400_000;

/** What is left of the deadline as the server is told it; undefined: the call did not get there. */
async function toldMs(run: WireRun, deadlineMs: number): Promise<number | undefined> {
  let leftMs: number | undefined;
  const { port } = await run.serve({
    describe: (_request, { deadlineAtMs }) => {
      leftMs = deadlineAtMs - Date.now();
      return Promise.resolve(create(DescribeResponseSchema));
    },
  });
  await run.connect(port).describe(named, { deadlineMs });
  return leftMs;
}

wireRule("the server is told the caller's deadline", { both: true }, async (run) => {
  const leftMs = (await toldMs(run, 600_000)) ?? 0;
  return leftMs > 300_000 && leftMs <= 601_000;
});

wireRule(
  "a deadline of a month is a long one",
  {
    "grpc-js": "long",
    "connect-node": "never sent",
    because:
      "timers end at 24 days: our client stops there, connect-node's becomes one millisecond; nobody asks for so long",
  },
  async (run) => {
    const leftMs = await toldMs(run, monthMs);
    return leftMs === undefined ? "never sent" : leftMs > monthMs / 2 ? "long" : leftMs;
  },
);

wireRule(
  "a call without a deadline never reaches a vendor",
  {
    "grpc-js": failed("INVALID_ARGUMENT", { outcome: "NOT_APPLIED" }),
    "connect-node": failed("INVALID_ARGUMENT", {
      message: "cannot answer Ensure: it has no deadline",
      reason: "INVALID_FIELD",
      outcome: "NOT_APPLIED",
      fields: ["grpc-timeout"],
    }),
    because: "our client refuses it before it is sent; a stranger's is refused by the server",
  },
  async (run) => {
    const { end, vendor } = await run.adapter();
    const failure = failureIn(await end.ensure(wished(), { deadlineMs: "none" }));
    return vendor.requests.length === 0 ? failure : vendor.requests;
  },
);

wireRule(
  "GetProviderInfo answers also without a deadline",
  {
    "grpc-js": ["INVALID_ARGUMENT", undefined, "NOT_APPLIED"],
    "connect-node": "somebody",
    because: "our client waits for nobody for ever, whatever it asks",
  },
  async (run) => {
    const { port } = await run.serve({
      getProviderInfo: () =>
        Promise.resolve(create(GetProviderInfoResponseSchema, { name: "somebody" })),
    });
    const heard = await run.connect(port).getProviderInfo({}, { deadlineMs: "none" });
    return heard.kind === "answer" ? heard.answer.name : wordsOf(heard);
  },
);

wireRule(
  "a deadline of nothing reaches no vendor",
  {
    "grpc-js": [["DEADLINE_EXCEEDED", undefined, "NOT_APPLIED"], 0],
    "connect-node": [["INVALID_ARGUMENT", "INVALID_FIELD", "NOT_APPLIED"], 0],
    because: "0 ms is no time to our client, and no deadline to connect-node",
  },
  async (run) => {
    const { end, vendor } = await run.adapter();
    return [wordsOf(await end.ensure(wished(), { deadlineMs: 0 })), vendor.requests.length];
  },
);

wireRule(
  "a deadline that passes while a read waits ends the read at the server too",
  { both: "DEADLINE_EXCEEDED" },
  async (run) => {
    let isAborted = false;
    const { port } = await run.serve({
      describe: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            isAborted = true;
            reject(signal.reason);
          });
        }),
    });
    const { code } = failureIn(await run.connect(port).describe(named, { deadlineMs: 200 }));
    await until(() => isAborted);
    return code;
  },
);

wireRule(
  "a change that is at the vendor when the deadline passes runs on, and is not made again",
  { both: ["DEADLINE_EXCEEDED", "ABORTED", "BUSY", "NOT_APPLIED", Change.NONE, 1] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    vendor.faults.push({ method: "POST", when: "before", effect: vendor.hold });
    // The library's own clock and the server's answer race here: only the code is certain.
    const late = failureIn(await end.ensure(wished(), { deadlineMs: 1_000 }));
    await until(() => vendor.heldCount === 1);
    const busy = wordsOf(await end.ensure(wished()));
    vendor.releaseHeld();
    let change = await end.ensure(wished());
    for (let tries = 0; change.kind === "failure" && tries < 100; tries += 1) {
      change = await end.ensure(wished());
    }
    return [late.code, ...busy, answerIn(change).change, vendor.things.size];
  },
);
