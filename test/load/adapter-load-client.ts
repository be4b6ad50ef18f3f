/**
 * The load of `npm run load:adapter`, a process of its own so that it does not slow what it measures:
 * bare HTTP/2 with the few bytes that gRPC adds, over one connection. Takes one task at a time from
 * its parent and answers what it measured.
 */
import { connect } from "node:http2";
import type { ClientHttp2Session } from "node:http2";

import type { LoadResult, LoadTask } from "./adapter-load-tasks.ts";

const answerBytesMax = 1 << 20;
const deadlineMs = 10_000;

/** Sends each request over and over, all of them at a time, until the time is over. */
async function run(task: LoadTask): Promise<LoadResult> {
  const session = connect(`http://127.0.0.1:${task.port}`);
  session.on("error", () => undefined);
  const latenciesMs: number[] = [];
  const failures = new Map<string, number>();
  const startMs = performance.now();
  const endMs = startMs + task.seconds * 1_000;
  const worker = async (requestBase64: string): Promise<void> => {
    const frame = framed(Buffer.from(requestBase64, "base64"));
    for (let nowMs = startMs; nowMs < endMs;) {
      const status = await call(session, task.path, frame);
      const doneMs = performance.now();
      if (status === "0") latenciesMs.push(doneMs - nowMs);
      else failures.set(status, (failures.get(status) ?? 0) + 1);
      nowMs = doneMs;
    }
  };
  await Promise.all(task.requestsBase64.map(worker));
  const seconds = (performance.now() - startMs) / 1_000;
  session.destroy();
  return { latenciesMs, seconds, failures: [...failures] };
}

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The call's grpc-status, or what became of it instead. */
function call(session: ClientHttp2Session, path: string, frame: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      te: "trailers",
      "content-type": "application/grpc",
      "grpc-timeout": `${deadlineMs}m`,
    });
    let status = "no status";
    let bytes = 0;
    const readStatus = (headers: Readonly<Record<string, unknown>>): void => {
      const told = headers["grpc-status"];
      if (typeof told === "string") status = told;
    };
    stream.on("response", readStatus);
    stream.on("trailers", readStatus);
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > answerBytesMax) stream.destroy();
    });
    stream.on("error", (error: Error) => {
      status = error.message;
    });
    stream.on("close", () => resolve(status));
    stream.setTimeout(deadlineMs * 2, () => stream.destroy());
    stream.end(frame);
  });
}

process.on("message", (task: LoadTask) => {
  void run(task).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
