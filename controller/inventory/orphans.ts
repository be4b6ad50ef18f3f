/**
 * `npm run orphans`: vendor instances that carry our stamp and belong to no object of this cluster.
 * Reads alone, unless --delete. Exits 0, 1 when something could not be seen or deleted, 2 for options.
 */
import { createInterface } from "node:readline/promises";
import { optionsOrExit } from "../../services/process/shutdown.ts";
import { Inventory } from "./inventory.ts";
import type { Orphan, OrphanReport } from "./inventory.ts";
import { readOrphanOptions } from "./inventory-options.ts";
import type { OrphanOptions } from "./inventory-options.ts";
import { removeOrphan } from "./orphan-removal.ts";
import { textTable } from "./text-table.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(options: OrphanOptions): Promise<number> {
  const inventory = await Inventory.open(options);
  try {
    const report = await inventory.orphans();
    if (options.json) say(JSON.stringify(report));
    else print(report);
    for (const words of report.unseen) complain(`not seen: ${words}`);
    const isWhole = report.unseen.length === 0;
    if (!options.delete || report.orphans.length === 0) return isWhole ? 0 : 1;
    if (!options.yes && !(await isWanted(report.orphans.length))) {
      complain("nothing was deleted");
      return 1;
    }
    return (await removeAll(inventory, report.orphans)) && isWhole ? 0 : 1;
  } finally {
    await inventory.close();
  }
}

function print({ orphans }: OrphanReport): void {
  if (orphans.length === 0) {
    say("no orphans found");
    return;
  }
  const rows = orphans.map(({ class: className, instance, why }) => [
    className,
    instance.realm,
    instance.providerID,
    instance.key === "" ? instance.stamp : instance.key,
    instance.createdAtMs === undefined ? "" : new Date(instance.createdAtMs).toISOString(),
    why,
  ]);
  const heads = ["CLASS", "REALM", "PROVIDERID", "KEY", "CREATED", "WHY"];
  for (const line of textTable(heads, rows)) say(line);
}

/** Only a person at a terminal can say yes here; --yes is for all others. */
async function isWanted(count: number): Promise<boolean> {
  if (!process.stdin.isTTY) {
    complain("there is no terminal to ask at: give --yes with --delete");
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(
      `Delete ${count} instances at their vendors, for good? Type yes: `,
    );
    return answer.trim() === "yes";
  } finally {
    terminal.close();
  }
}

async function removeAll(inventory: Inventory, orphans: readonly Orphan[]): Promise<boolean> {
  let isDone = true;
  for (const orphan of orphans) {
    const { providerID, realm } = orphan.instance;
    try {
      const outcome = await removeOrphan(inventory, orphan);
      if (outcome !== "deleted") isDone = false;
      complain(`${providerID} (${realm}): ${outcome}`);
    } catch (error) {
      isDone = false;
      complain(`${providerID} (${realm}): ${wordsOf(error)}`);
    }
  }
  return isDone;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const options = optionsOrExit(() => readOrphanOptions());
try {
  process.exitCode = await main(options);
} catch (error) {
  complain(`cannot look for orphans: ${wordsOf(error)}`);
  process.exitCode = 1;
}
