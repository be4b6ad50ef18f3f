/**
 * Makes all programs ready that tests and the local control plane need. `npm test` runs it first,
 * so that no test spends its time limit on a compiler.
 */
import { binaryNames, ensureBinary } from "./binaries.ts";

try {
  for (const name of binaryNames) await ensureBinary(name);
} catch (cause) {
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = 1;
}
