import { setTimeout as delay } from "node:timers/promises";

const pollMs = 50;

/**
 * For tests: runs the check until it stops throwing, and rejects with its last error when that
 * takes longer than timeoutMs (10 s when absent). What a cluster does is seldom done at once.
 */
export async function eventually<Result>(
  check: () => Promise<Result>,
  timeoutMs = 10_000,
): Promise<Result> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (cause) {
      if (Date.now() > deadline) throw cause;
    }
    await delay(pollMs);
  }
}
