/**
 * `npm run new-adapter -- VENDOR`: the folder of a new adapter, adapters/VENDOR, made from
 * examples/adapter-template. It type-checks and runs as it is; where the vendor's own words are
 * missing it says "Fill in", and the conformance suite fails with what to write.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const template = join(root, "examples", "adapter-template");

/** How the template calls its vendor. */
const placeholder = /acme|Acme/g;
/** Part of an object's and a label's name: "dhp-adapter-VENDOR" has to be a DNS label. */
const vendorForm = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const vendorCharactersMax = 40;

/** Why a vendor cannot be called so; undefined: it can. */
export function problemWithVendor(vendor: string): string | undefined {
  if (vendor === "") return "name the vendor: npm run new-adapter -- VENDOR";
  if (!vendorForm.test(vendor) || vendor.length > vendorCharactersMax) {
    return `"${vendor}" cannot name an adapter: want lower-case letters, digits and single hyphens, a letter first, at most ${vendorCharactersMax} characters`;
  }
  return vendor === "acme" ? "acme is the template's own name" : undefined;
}

/** A text of the template, or a file's name, for `vendor`. */
export function rendered(text: string, vendor: string): string {
  const words = vendor.split("-").map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  const upper = words.join("");
  const lower = upper.slice(0, 1).toLowerCase() + upper.slice(1);
  return text.replaceAll(placeholder, (found, at: number) => {
    if (found === "Acme") return upper;
    // In an identifier a hyphen would be a minus: acmeAdapter.
    return /[A-Z]/.test(text.charAt(at + found.length)) ? lower : vendor;
  });
}

/** Writes the folder; paths of what was written, relative to it. Throws when the folder exists. */
export function writeAdapter(vendor: string, folder: string): readonly string[] {
  if (existsSync(folder)) throw new Error(`${folder} exists already; nothing was written`);
  const files = readdirSync(template, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(template, join(entry.parentPath, entry.name)))
    .sort();
  for (const file of files) {
    const path = join(folder, rendered(file, vendor));
    mkdirSync(dirname(path), { recursive: true });
    cpSync(join(template, file), path);
    writeFileSync(path, rendered(readFileSync(path, "utf8"), vendor));
  }
  return files.map((file) => rendered(file, vendor));
}

function main(): number {
  const [vendor = "", ...more] = process.argv.slice(2);
  const problem =
    more.length > 0 ? `one vendor at a time, not ${more.join(" ")}` : problemWithVendor(vendor);
  if (problem !== undefined) {
    console.error(problem);
    return 2;
  }
  const folder = join(root, "adapters", vendor);
  try {
    const files = writeAdapter(vendor, folder);
    console.log(files.map((file) => `adapters/${vendor}/${file}`).join("\n"));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
  console.log(nextSteps(vendor));
  return 0;
}

function nextSteps(vendor: string): string {
  return `
Next, with adapters/README.md beside you:
  1. adapters/${vendor}/README.md: what an instance is, and what the vendor does not say
  2. adapter.ts, translate.ts, errors.ts, emulator.ts: what says "Fill in"
  3. node --test adapters/${vendor}/conformance.test.ts: what fails says what to write
  4. npm run check`;
}

if (import.meta.main) process.exitCode = main();
