import { ApiError } from "./api-error.ts";

/**
 * Splits a byte stream at line feeds and parses each line as JSON; empty lines are skipped.
 * Splitting bytes is safe for UTF-8: no part of a multi-byte character equals a line feed.
 * @throws ApiError "unreadable" when a line is longer than `lineBytesMax` or no JSON
 */
export async function* parseJsonLines(
  chunks: AsyncIterable<Uint8Array>,
  lineBytesMax: number,
): AsyncGenerator<unknown, void, undefined> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      pending.push(chunk.subarray(start, end));
      checkLength(pendingBytes + end - start, lineBytesMax);
      const line = Buffer.concat(pending).toString("utf8");
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      if (line.trim() !== "") yield parseLine(line);
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
      checkLength(pendingBytes, lineBytesMax);
    }
  }
  // A rest without line feed is a cut line: the connection ended inside an event, which then
  // counts as never received. The next watch starts before it.
}

function checkLength(bytes: number, lineBytesMax: number): void {
  if (bytes <= lineBytesMax) return;
  throw unreadable(`line longer than ${lineBytesMax} bytes`);
}

function parseLine(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    return value;
  } catch (error) {
    throw unreadable("line is not JSON", error);
  }
}

function unreadable(problem: string, cause?: unknown): ApiError {
  return new ApiError({
    kind: "unreadable",
    status: 200,
    reason: "",
    message: `cannot read a watch stream: ${problem}`,
    cause,
  });
}

const lineFeed = 0x0a;
