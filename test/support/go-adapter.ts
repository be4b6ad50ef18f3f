/** The adapter that is written in Go, with its make-believe vendor Parrot in the same process. */
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { startExecutable } from "./program.ts";
import type { Program } from "./program.ts";

export const parrotEndpoint = "https://api.parrot.example";

/** On a free port. @param flags of its own: "--vendor-delay=1s" */
export async function startGoAdapter(flags: readonly string[] = []): Promise<Program> {
  const program = await ensureBinary("adapter-go");
  return startExecutable({ name: "adapter-go", program, args: ["--listen=127.0.0.1:0", ...flags] });
}
