/** Leaving a call: the server hears it, what was sent runs on. */
import { create } from "@bufbuild/protobuf";

import { Change, WatchHealthResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
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

wireRule(
  "leaving a call ends it as CANCELLED, and the server hears of it",
  { both: failed("CANCELLED") },
  async (run) => {
    const seen = { isBegun: false, isAborted: false };
    const { port } = await run.serve({
      ensure: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          seen.isBegun = true;
          signal.addEventListener("abort", () => {
            seen.isAborted = true;
            reject(signal.reason);
          });
        }),
    });
    const leaving = new AbortController();
    const call = run.connect(port).ensure(named, { signal: leaving.signal });
    await until(() => seen.isBegun);
    leaving.abort();
    const failure = failureIn(await call);
    await until(() => seen.isAborted);
    return failure;
  },
);

wireRule(
  "a call that was left before it began reaches nobody",
  {
    "grpc-js": [failed("CANCELLED", { outcome: "NOT_APPLIED" }), 0],
    "connect-node": [failed("CANCELLED"), 0],
    because: "our client knows that nothing was sent and says so; a stranger's caller must guess",
  },
  async (run) => {
    const { end, vendor } = await run.adapter();
    const heard = await end.ensure(wished(), { signal: AbortSignal.abort() });
    return [failureIn(heard), vendor.requests.length];
  },
);

wireRule(
  "a change that is at the vendor when its caller leaves runs on, and is not made again",
  { both: ["CANCELLED", "ABORTED", "BUSY", "NOT_APPLIED", Change.NONE, 1] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    vendor.faults.push({ method: "POST", when: "before", effect: vendor.hold });
    const leaving = new AbortController();
    const call = end.ensure(wished(), { signal: leaving.signal });
    await until(() => vendor.heldCount === 1);
    leaving.abort();
    const left = failureIn(await call);
    const busy = wordsOf(await end.ensure(wished()));
    vendor.releaseHeld();
    let change = await end.ensure(wished());
    for (let tries = 0; change.kind === "failure" && tries < 100; tries += 1) {
      change = await end.ensure(wished());
    }
    return [left.code, ...busy, answerIn(change).change, vendor.things.size];
  },
);

wireRule(
  "a call that is left before anything was sent to the vendor changes nothing there",
  { both: ["CANCELLED", 0] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    vendor.faults.push({ method: "GET", when: "before", effect: vendor.hold });
    const leaving = new AbortController();
    const call = end.ensure(wished(), { signal: leaving.signal });
    await until(() => vendor.heldCount === 1);
    leaving.abort();
    const left = failureIn(await call);
    vendor.releaseHeld();
    // The key is free again once the server has heard of it.
    let removed = await end.delete(wished());
    for (let tries = 0; removed.kind === "failure" && tries < 1_000; tries += 1) {
      if (removed.failure.reason === "NOT_FOUND") break;
      removed = await end.delete(wished());
    }
    const posts = vendor.requests.filter((request) => request.startsWith("POST"));
    return [left.code, posts.length];
  },
);

wireRule(
  "leaving a health stream ends it without an error, and the server hears of it",
  { both: ["answer"] },
  async (run) => {
    let isAborted = false;
    const { port } = await run.serve({
      watchHealth: async function* (_request, { signal }) {
        yield create(WatchHealthResponseSchema);
        await new Promise<void>((end) => signal.addEventListener("abort", () => end()));
        isAborted = true;
      },
    });
    const leaving = new AbortController();
    const heard: string[] = [];
    for await (const { kind } of run.connect(port).watchHealth({}, leaving.signal)) {
      heard.push(kind);
      leaving.abort();
    }
    await until(() => isAborted);
    return heard;
  },
);
