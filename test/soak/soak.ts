/**
 * `npm run soak -- [--part watches] [--part idle-drop] [--part steady] [--minutes 10] [--json]`: what only
 * shows in minutes of real time, on a real API server. All parts side by side when none is named. The
 * last line is one JSON object; exit code 0 when all held, 1 when not. Loopback only.
 */
import { parseArgs } from "node:util";

import { soakIdleDrop } from "./idle-drop.ts";
import { soakSteady } from "./steady.ts";
import { soakWatches } from "./watches.ts";

/** What a part found; `problems` is empty when all held. */
export interface PartResult {
  readonly problems: readonly string[];
  readonly [figure: string]: unknown;
}

type Part = (minutes: number, say: (line: string) => void) => Promise<PartResult>;

const parts: ReadonlyMap<string, Part> = new Map([
  ["watches", soakWatches],
  ["idle-drop", soakIdleDrop],
  ["steady", soakSteady],
]);
const minutesMax = 240;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      part: { type: "string", multiple: true, default: [...parts.keys()] },
      minutes: { type: "string", default: "10" },
      json: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  const unknown = values.part.filter((name) => !parts.has(name));
  if (unknown.length > 0 || !(minutes > 0 && minutes <= minutesMax)) {
    console.error(
      `--part knows ${[...parts.keys()].join(", ")}; --minutes wants more than 0 and at most ${minutesMax}`,
    );
    return 2;
  }
  const results = await Promise.all(
    values.part.map(async (name) => {
      const say = (line: string): void => {
        if (!values.json) console.log(`${name}: ${line}`);
      };
      const result = await parts.get(name)?.(minutes, say);
      for (const problem of result?.problems ?? []) say(`PROBLEM ${problem}`);
      return [name, result] as const;
    }),
  );
  console.log(JSON.stringify({ minutes, ...Object.fromEntries(results) }));
  return results.every(([, result]) => result?.problems.length === 0) ? 0 : 1;
}

process.exitCode = await main();
