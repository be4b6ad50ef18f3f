import type { BuildProgress } from "./cached-build.ts";

const plainLineMs = 15_000;

/** The part of a stream the printer needs; process.stderr is one. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/**
 * Prints what is built and for how long: on a terminal one line that counts up, elsewhere a line
 * at the start, then one each 15 s, so that a log stays short.
 */
export function createProgressPrinter(stream: ProgressStream): (progress: BuildProgress) => void {
  let printedAtMs = Number.NEGATIVE_INFINITY;
  let lastKind = "";
  return (progress) => {
    const text = describe(progress);
    if (stream.isTTY === true) {
      stream.write(`\r\u001B[K${text}${progress.kind === "built" ? "\n" : ""}`);
      return;
    }
    const key = `${progress.kind} ${progress.name}`;
    if (key === lastKind && progress.elapsedMs - printedAtMs < plainLineMs) return;
    lastKind = key;
    printedAtMs = progress.elapsedMs;
    stream.write(`${text}\n`);
  };
}

function describe(progress: BuildProgress): string {
  const elapsed = formatElapsed(progress.elapsedMs);
  switch (progress.kind) {
    case "building":
      return `building ${progress.name} (once): ${elapsed}, ${progress.packages} packages compiled`;
    case "waiting":
      return `waiting for another process that builds ${progress.name}: ${elapsed}`;
    case "built":
      return `built ${progress.name} in ${elapsed}`;
    default:
      return progress satisfies never;
  }
}

function formatElapsed(elapsedMs: number): string {
  const seconds = Math.round(elapsedMs / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
