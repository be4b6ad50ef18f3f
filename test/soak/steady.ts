/** A thousand settled objects at two vendors for five minutes: looked at all the time, never written. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import type { PartResult } from "./soak.ts";

const healthLoad = fileURLToPath(new URL("../load/health-load.ts", import.meta.url));
const steadyMinutesMax = 5;
const instances = 1_000;
/** Making the instances, and the changes that are timed afterwards. */
const aroundMs = 15 * 60_000;

export async function soakSteady(
  minutes: number,
  say: (line: string) => void,
): Promise<PartResult> {
  const steadySeconds = Math.min(steadyMinutesMax, minutes) * 60;
  say(`${instances} instances, then ${steadySeconds} s in which nothing happens`);
  const flags = ["--instances", String(instances), "--steady-seconds", String(steadySeconds)];
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [healthLoad, ...flags, "--json"], {
    timeout: steadySeconds * 1_000 + aroundMs,
  }).catch((error: { readonly stdout?: string; readonly message: string }) => {
    if (error.stdout === undefined || error.stdout === "") throw error;
    return { stdout: error.stdout };
  });
  const report = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  const { statusWritesSteady: writes } = report;
  const problems = writes === 0 ? [] : [`${writes} status writes while nothing happened`];
  return { problems, steadySeconds, ...report };
}
