/**
 * The table of what each adapter says of itself, in adapters/README.md between two marks. Made from
 * GetProviderInfo of the running programs, so that no hand keeps it.
 *
 *     npm run generate:capabilities
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { ProviderAPI, StampPlaceSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { GetProviderInfoResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { AdapterLauncher } from "./core/adapter-process.ts";
import { WireClient, describeReply } from "./core/wire-client.ts";
import { capabilityName, capabilityNames } from "./core/wire-words.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = join(root, "adapters/README.md");
const [begin, end] = [
  "<!-- capabilities: npm run generate:capabilities -->",
  "<!-- /capabilities -->",
];

/** What adapters/README.md has to be. */
export async function readmeWithTable(): Promise<{ readonly is: string; readonly should: string }> {
  const is = await readFile(readme, "utf8");
  const [from, to] = [is.indexOf(begin), is.indexOf(end)];
  if (from < 0 || to < from)
    throw new Error(`adapters/README.md has not the marks ${begin}, ${end}`);
  const table = tableOf(await allInfos());
  return { is, should: `${is.slice(0, from + begin.length)}\n${table}\n${is.slice(to)}` };
}

/** Of each folder of adapters/ that is a program, and of the example in Go; in order of names. */
async function allInfos(): Promise<readonly GetProviderInfoResponse[]> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-capabilities-"));
  try {
    const accounts = join(folder, "accounts.json");
    const account = { endpointHosts: ["example.com"], credentialFile: join(folder, "none.json") };
    await writeFile(accounts, JSON.stringify({ accounts: { default: account } }));
    const commands = [
      ...adapterMains().map((main) => [
        process.execPath,
        join(root, main),
        "--listen=127.0.0.1:{port}",
        "--admin-listen=127.0.0.1:0",
        `--accounts=${accounts}`,
      ]),
      [await ensureBinary("adapter-go"), "--listen=127.0.0.1:{port}"],
    ];
    const infos: GetProviderInfoResponse[] = [];
    for (const command of commands) infos.push(await infoOf(command));
    return infos.sort((left, right) => (left.name < right.name ? -1 : 1));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Tracked ones: a folder that somebody begins is no part of the table yet. */
function adapterMains(): readonly string[] {
  const args = ["ls-files", "--", ":(glob)adapters/*/main.ts"];
  const listed = execFileSync("git", args, { cwd: root, encoding: "utf8", timeout: 60_000 });
  return listed.split("\n").filter((path) => path !== "");
}

async function infoOf(command: readonly string[]): Promise<GetProviderInfoResponse> {
  const launcher = await AdapterLauncher.prepare(command);
  await launcher.start();
  const client = new WireClient({ address: launcher.address, secrets: [] });
  try {
    const reply = await client.call(ProviderAPI.method.getProviderInfo, { contractVersion: 1 });
    if (reply.kind === "answer") return reply.answer;
    throw new Error(`${command.join(" ")}: ${describeReply(reply)}`);
  } finally {
    client.close();
    await launcher.kill();
  }
}

function tableOf(infos: readonly GetProviderInfoResponse[]): string {
  const row = (title: string, cell: (info: GetProviderInfoResponse) => string): string =>
    `| ${[title, ...infos.map(cell)].join(" | ")} |`;
  return [
    row("", ({ name }) => name),
    row("---", () => "---"),
    ...capabilityNames.map((name) =>
      row(name, ({ capabilities }) =>
        capabilities.map(capabilityName).includes(name) ? "yes" : "",
      ),
    ),
    row("stamp in", ({ stampPlace }) => stampPlaceName(stampPlace)),
    row("reads lag by up to", ({ visibilityLag }) => words(visibilityLag)),
    row("lists show changes at once", ({ listsAreConsistent: isSo }) => (isSo ? "yes" : "")),
    row("regions", ({ regions }) => (regions.length === 0 ? "any" : regions.join(", "))),
    row("a change may take effect for", ({ limits }) => words(limits?.mutationDeadline)),
    row("calls per second and account", ({ limits }) => `${limits?.callsPerSecond ?? "no limit"}`),
    row("longest name in bytes", ({ limits }) => `${limits?.nameBytesMax ?? "not known"}`),
  ].join("\n");
}

function stampPlaceName(place: number): string {
  const name = StampPlaceSchema.values.find(({ number }) => number === place)?.name ?? `${place}`;
  return name.slice(StampPlaceSchema.sharedPrefix?.length ?? 0);
}

function words(duration: Duration | undefined): string {
  return duration === undefined ? "not known" : `${durationMs(duration) / 1000} s`;
}

/** Where the program lies, so that importing it runs nothing. */
const isProgram = import.meta.url === pathToFileURL(process.argv[1] ?? "").href;
if (isProgram) {
  const { is, should } = await readmeWithTable();
  if (is !== should) await writeFile(readme, should);
  process.stdout.write(`adapters/README.md: ${is === should ? "as it was" : "written"}\n`);
}
