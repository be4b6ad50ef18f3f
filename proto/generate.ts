/**
 * Generates proto/gen from the .proto files: TypeScript messages, and the descriptor set that the
 * reflection service answers from; then the Go code of examples/adapter-go. `--check` generates
 * beside and fails on any difference, so that the committed code cannot drift from the contract.
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const committed = join(root, "proto", "gen");
const googleProtos = "node_modules/google-proto-files";

/** What grpcurl must be able to name: our contract, the error details beside it, the health service. */
const descriptorInputs: readonly (readonly string[])[] = [
  ["proto"],
  [
    googleProtos,
    "--path",
    `${googleProtos}/google/rpc/status.proto`,
    "--path",
    `${googleProtos}/google/rpc/error_details.proto`,
  ],
  ["node_modules/grpc-health-check/proto"],
];

function main(): void {
  const work = mkdtempSync(join(tmpdir(), "dhp-generate-"));
  try {
    buf(["generate", "--output", work]);
    const generated = join(work, "proto", "gen");
    mkdirSync(generated, { recursive: true });
    writeFileSync(join(generated, "descriptors.binpb"), descriptorSet());
    if (process.argv.includes("--check")) {
      check(generated);
    } else {
      rmSync(committed, { recursive: true, force: true });
      cpSync(generated, committed, { recursive: true });
      // By a template of its own, and compared by test/integration/go-adapter-code.test.ts: it needs Go.
      buf(["generate"], join(root, "examples", "adapter-go"));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function check(generated: string): void {
  const names = [...new Set([...filesBelow(generated), ...filesBelow(committed)])].sort();
  const differing = names.filter(
    (name) => !sameBytes(join(generated, name), join(committed, name)),
  );
  if (differing.length > 0) {
    console.error(
      `proto/gen is not what proto/ generates: ${differing.join(", ")}. Run: npm run generate`,
    );
    process.exitCode = 1;
  }
}

function descriptorSet(): Uint8Array {
  const byName = new Map<string, FileDescriptorProto>();
  for (const input of descriptorInputs) {
    const bytes = buf(["build", ...input, "--as-file-descriptor-set", "-o", "-#format=binpb"]);
    for (const file of fromBinary(FileDescriptorSetSchema, bytes).file) {
      if (!byName.has(file.name)) byName.set(file.name, file);
    }
  }
  return toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [...byName.values()] }),
  );
}

function buf(args: readonly string[], cwd = root): Uint8Array {
  return execFileSync(join(root, "node_modules", ".bin", "buf"), args, {
    cwd,
    maxBuffer: 64 << 20,
    timeout: 120_000,
    stdio: ["ignore", "pipe", "inherit"],
    // buf loads the plugin by name: it stands beside buf itself.
    env: {
      ...process.env,
      PATH: `${join(root, "node_modules", ".bin")}:${process.env["PATH"] ?? ""}`,
    },
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

function sameBytes(left: string, right: string): boolean {
  try {
    return readFileSync(left).equals(readFileSync(right));
  } catch (_absent) {
    // One side lacks the file: that is a difference.
    return false;
  }
}

main();
