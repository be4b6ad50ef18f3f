/**
 * `npm run billing`: every instance that may cost money, and why it is there: what objects record, and
 * what the vendors show beyond that. Reads alone. Exits 0, 1 when something could not be seen, 2 for
 * options.
 */
import { optionsOrExit } from "../../services/process/shutdown.ts";
import { billsOf } from "./bills.ts";
import type { Bill } from "./bills.ts";
import { Inventory } from "./inventory.ts";
import { readBillingOptions } from "./inventory-options.ts";
import type { InventoryOptions } from "./inventory-options.ts";
import { textTable } from "./text-table.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(options: InventoryOptions): Promise<number> {
  const inventory = await Inventory.open(options);
  try {
    const { orphans, unseen } = await inventory.orphans();
    const recorded = (await inventory.objects()).flatMap(billsOf);
    const bills: readonly Bill[] = [
      ...recorded,
      ...orphans.map(({ class: className, place, instance, why }) => ({
        object: "",
        class: className,
        endpoint: place.endpoint,
        region: place.region,
        providerID: instance.providerID,
        reason: "Orphaned" as const,
        why: `${why}: deleted by hand, abandoned, or of a restored backup; npm run orphans`,
      })),
    ];
    if (options.json) say(JSON.stringify({ bills, unseen }));
    else print(bills);
    for (const words of unseen) complain(`not seen: ${words}`);
    return unseen.length === 0 ? 0 : 1;
  } finally {
    await inventory.close();
  }
}

function print(bills: readonly Bill[]): void {
  const rows = bills.map((bill) => [
    bill.object === "" ? "-" : bill.object,
    bill.class,
    bill.region,
    bill.providerID,
    bill.reason,
    bill.why,
  ]);
  const heads = ["OBJECT", "CLASS", "REGION", "PROVIDERID", "REASON", "WHY"];
  for (const line of textTable(heads, rows)) say(line);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const options = optionsOrExit(() => readBillingOptions());
try {
  process.exitCode = await main(options);
} catch (error) {
  complain(`cannot list bills: ${wordsOf(error)}`);
  process.exitCode = 1;
}
