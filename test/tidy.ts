/**
 * The rules of this repository that a program can keep: who may import whom, one door per heavy
 * package, names, sizes. `node test/tidy.ts` prints what breaks them and exits 1.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

export interface SourceFile {
  /** Relative to the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** One broken rule: where, and what to do. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly problem: string;
}

const linesMax = 400;
const columnsMax = 100;

/** Which folder may import from which; what is not named may not be imported. */
const layers: readonly { readonly from: RegExp; readonly to: RegExp; readonly why: string }[] = [
  {
    from: /^controller\//,
    to: /^(controller\/|proto\/gen\/|services\/(contract|process)\/)/,
    why: "the controller stands on services/contract and services/process alone",
  },
  {
    from: /^controller\/(kubernetes|queue)\//,
    to: /^(controller\/(kubernetes|queue)\/|services\/process\/)/,
    why: "the Kubernetes runtime and the queue know nothing of providers",
  },
  {
    from: /^controller\/resource\//,
    to: /^controller\/resource\//,
    why: "resource/ is pure: it imports nothing outside itself",
  },
  {
    from: /^services\//,
    to: /^(services\/|proto\/gen\/)/,
    why: "services know no vendor and no Kubernetes",
  },
];

/** Heavy packages and the one place each may be imported at. */
const doors: readonly { readonly name: RegExp; readonly door: RegExp }[] = [
  { name: /^@kubernetes\/client-node$/, door: /^controller\/kubernetes\// },
  { name: /^(@grpc\/|grpc-health-check$)/, door: /^services\/contract\// },
  { name: /^opossum$/, door: /^services\/vendor-http\/breaker\.ts$/ },
  { name: /^undici$/, door: /^(services\/vendor-http|controller\/kubernetes)\// },
  { name: /^prom-client$/, door: /^services\/process\/metrics[^/]*\.ts$/ },
  { name: /^@connectrpc\//, door: /^(test|services\/fleet)\// },
];

const bannedNames = /(^|[-/])(utils?|helpers?|common|misc|types|index)\.ts$/;

export function findUntidy(files: readonly SourceFile[]): readonly Finding[] {
  return files.flatMap((file) => [
    ...nameFindings(file),
    ...importFindings(file),
    ...lineFindings(file),
  ]);
}

/** All TypeScript that is ours: tracked or new, generated code left out. */
export function readSources(): readonly SourceFile[] {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.ts"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 16 << 20,
    timeout: 60_000,
  });
  return listed
    .split("\n")
    .filter((path) => path !== "" && !path.startsWith("proto/gen/"))
    .flatMap((path) => {
      const text = readIfPresent(join(root, path));
      return text === undefined ? [] : [{ path, text }];
    });
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (_deleted) {
    // Tracked, but deleted in the working tree.
    return undefined;
  }
}

function nameFindings({ path, text }: SourceFile): Finding[] {
  const findings: Finding[] = [];
  const add = (problem: string): void => void findings.push({ path, line: 1, problem });
  if (bannedNames.test(path)) add("name the file after its one idea");
  if (!/^([a-z0-9-]+\/)*[a-z0-9-]+(\.[a-z0-9-]+)*\.ts$/.test(path))
    add("file names are kebab-case");
  const lines = text.split("\n").length - 1;
  if (lines > linesMax) add(`${lines} lines: more than ${linesMax} are more than one idea`);
  return findings;
}

function importFindings(file: SourceFile): Finding[] {
  const findings: Finding[] = [];
  const isTest = file.path.endsWith(".test.ts") || /^(test|deploy)\//.test(file.path);
  for (const { target, line } of importsOf(file.text)) {
    const add = (problem: string): void => void findings.push({ path: file.path, line, problem });
    if (target.startsWith(".")) {
      if (!target.endsWith(".ts")) add(`import "${target}" has to end in .ts`);
      const resolved = posix.normalize(posix.join(posix.dirname(file.path), target));
      if (!isTest) for (const problem of layerProblems(file.path, resolved)) add(problem);
      continue;
    }
    if (target.startsWith("node:")) continue;
    const door = doors.find(({ name }) => name.test(target));
    if (door !== undefined && !isTest && !door.door.test(file.path)) {
      add(`"${target}" may be imported in ${door.door.source} only`);
    }
  }
  return findings;
}

function layerProblems(from: string, to: string): string[] {
  const broken = layers.filter((layer) => layer.from.test(from) && !layer.to.test(to));
  const problems = broken.map(({ why }) => `may not import ${to}: ${why}`);
  const adapter = /^adapters\/([^/]+)\//.exec(from)?.[1];
  if (adapter !== undefined && !new RegExp(`^(adapters/${adapter}/|services/)`).test(to)) {
    problems.push(`may not import ${to}: an adapter stands on services and knows no other`);
  }
  return problems;
}

function* importsOf(text: string): Generator<{ readonly target: string; readonly line: number }> {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^;"']*?from\s+"([^"]+)"|import\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g;
  for (const match of text.matchAll(pattern)) {
    const target = match[1] ?? match[2] ?? match[3];
    if (target === undefined) continue;
    yield { target, line: text.slice(0, match.index + match[0].length).split("\n").length };
  }
}

const lineRules: readonly { readonly pattern: RegExp; readonly problem: string }[] = [
  // The words are split so that this file does not find itself.
  {
    pattern: new RegExp(["\\b(TO", "DO|FIX", "ME|XX", "X)\\b"].join("")),
    problem: "finish it or write an issue",
  },
  {
    pattern: new RegExp(["@ts", "(ignore|expect-error|nocheck)"].join("-")),
    problem: "mend the type instead",
  },
  {
    pattern: /^\s*(export )?(default|enum|namespace)\s/,
    problem: "not erasable, or a default export",
  },
  {
    pattern: /\b(test|it|describe)\.(skip|only|todo)\(|\{ *(skip|only|todo): *true/,
    problem: "a test that is switched off, or alone",
  },
];

const environmentPattern = /\bprocess\.env\b/;
const environmentReaders = /-options\.ts$|^proto\/generate\.ts$/;

function lineFindings({ path, text }: SourceFile): Finding[] {
  const findings: Finding[] = [];
  text.split("\n").forEach((content, index) => {
    const add = (problem: string): void => void findings.push({ path, line: index + 1, problem });
    for (const rule of lineRules) if (rule.pattern.test(content)) add(rule.problem);
    if (environmentPattern.test(content) && !environmentReaders.test(path)) {
      add("the environment is read in *-options.ts only");
    }
    // The formatter leaves long texts alone; a reader's window does not.
    if (content.length > columnsMax * 2) add(`${content.length} columns`);
  });
  return findings;
}

if (import.meta.main) {
  const findings = findUntidy(readSources());
  for (const { path, line, problem } of findings) console.error(`${path}:${line}: ${problem}`);
  if (findings.length > 0) process.exitCode = 1;
}
