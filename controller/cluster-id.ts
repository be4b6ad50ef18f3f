import type { Clock } from "../services/process/clock.ts";
import type { Log } from "../services/process/log.ts";
import type { Connection } from "./kubernetes/connection.ts";
import { readIdentity } from "./kubernetes/raw-object.ts";
import { backOffMs } from "./queue/back-off.ts";

const timeoutMs = 5_000;
const backOff = { minMs: 200, maxMs: 10_000 };

export interface ClusterIdOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/**
 * The cluster's name at vendors: the uid of namespace kube-system, which lives as long as the
 * cluster. Asked again until the API server answers; rejects when the signal aborts.
 */
export async function readClusterId(
  connection: Pick<Connection, "request">,
  options: ClusterIdOptions,
): Promise<string> {
  const { clock, log, signal } = options;
  const path = "/api/v1/namespaces/kube-system";
  for (let failures = 1; ; failures++) {
    signal.throwIfAborted();
    try {
      return readIdentity(await connection.request({ method: "GET", path, timeoutMs, signal })).uid;
    } catch (error) {
      const delayMs = backOffMs(backOff, failures, Math.random);
      log.warn({ error, delayMs }, "cannot read the cluster's uid, trying again");
      await clock.sleep(delayMs, signal);
    }
  }
}
