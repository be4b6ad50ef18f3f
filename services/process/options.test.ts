import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import {
  duration,
  file,
  hostPort,
  integer,
  oneOf,
  optional,
  repeated,
  text,
  toggle,
} from "./option-kinds.ts";
import { flagOf, HelpRequested, OptionsError, readOptions, variableOf } from "./options.ts";
import type { OptionSet, OptionsSpec } from "./options.ts";
import { registerSecret } from "./redaction.ts";

const here = fileURLToPath(import.meta.url);

const spec = {
  program: "dhp-test",
  summary: "tests options.",
  options: {
    fleet: text({ help: "Name of the fleet.", pattern: /^[a-z]+$/u, form: "a DNS label" }),
    listen: hostPort({ help: "Where to listen.", default: { host: "127.0.0.1", port: 0 } }),
    drainTimeoutMs: duration({ help: "Time to drain.", default: 10_000, msMax: 60_000 }),
    queueDepthMax: integer({ help: "Keys queued.", default: 100, min: 1, max: 1_000 }),
    logLevel: oneOf({ help: "Level.", default: "info", values: ["debug", "info"] }),
    allowPlaintext: toggle({ help: "Speak plaintext." }),
    accountsFile: optional(file({ help: "Accounts." })),
    connectTo: repeated(text({ help: "Where names lead." }), 2),
  },
} as const satisfies OptionsSpec<OptionSet>;

function mistakesOf(argv: readonly string[], env: Record<string, string> = {}): readonly string[] {
  try {
    readOptions(spec, argv, env);
  } catch (error) {
    assert.ok(error instanceof OptionsError, String(error));
    return error.mistakes;
  }
  return [];
}

test("what is not given has its default", () => {
  assert.deepEqual(readOptions(spec, ["--fleet", "a"], {}), {
    fleet: "a",
    listen: { host: "127.0.0.1", port: 0 },
    drainTimeoutMs: 10_000,
    queueDepthMax: 100,
    logLevel: "info",
    allowPlaintext: false,
    accountsFile: undefined,
    connectTo: [],
  });
});

test("each kind is read from flags, with a space or an equals sign", () => {
  const argv = [
    ..."--fleet=b --listen [::1]:8080 --drain-timeout 1.5s --queue-depth-max=7".split(" "),
    ..."--log-level debug --allow-plaintext --connect-to x=y=z --connect-to=second".split(" "),
    "--accounts-file",
    here,
  ];
  assert.deepEqual(readOptions(spec, argv, {}), {
    fleet: "b",
    listen: { host: "::1", port: 8080 },
    drainTimeoutMs: 1_500,
    queueDepthMax: 7,
    logLevel: "debug",
    allowPlaintext: true,
    accountsFile: here,
    connectTo: ["x=y=z", "second"],
  });
});

test("a variable gives what no flag gives; the flag wins; an empty variable is none", () => {
  const env = {
    DHP_FLEET: "fromenv",
    DHP_DRAIN_TIMEOUT: "2m",
    DHP_ALLOW_PLAINTEXT: "true",
    DHP_CONNECT_TO: "a, b",
    DHP_LOG_LEVEL: "",
    DHP_SOMEBODY_ELSES_PORT: "tcp://10.0.0.1",
  };
  const values = readOptions(spec, ["--drain-timeout", "1s"], { ...env, DHP_DRAIN_TIMEOUT: "bad" });
  assert.equal(values.drainTimeoutMs, 1_000);
  const fromEnv = readOptions(spec, [], { ...env, DHP_DRAIN_TIMEOUT: "1m" });
  assert.deepEqual(
    [
      fromEnv.fleet,
      fromEnv.drainTimeoutMs,
      fromEnv.allowPlaintext,
      fromEnv.connectTo,
      fromEnv.logLevel,
    ],
    ["fromenv", 60_000, true, ["a", "b"], "info"],
  );
});

test("all mistakes are told at once, each with where it was made", () => {
  const mistakes = mistakesOf(
    (
      "--fleet UPPER --listen nowhere --drain-timeout 5 --queue-depth-max 5000 " +
      "--draintimeout=1s stray --log-level"
    ).split(" "),
    { DHP_ACCOUNTS_FILE: "/does/not/exist", DHP_ALLOW_PLAINTEXT: "maybe", DHP_CONNECT_TO: "a,b,c" },
  );
  for (const beginning of [
    '"--draintimeout": no such option; did you mean --drain-timeout?',
    '"stray": not an option',
    "--log-level: its value is missing",
    '--fleet: "UPPER" is not a DNS label',
    '--listen: "nowhere" is not host:port',
    '--drain-timeout: "5" is not a duration',
    '--queue-depth-max: "5000" is not a whole number from 1 to 1000',
    'DHP_ALLOW_PLAINTEXT: "maybe" is neither true nor false',
    'DHP_ACCOUNTS_FILE: cannot read "/does/not/exist": ENOENT',
    "DHP_CONNECT_TO: given 3 times, at most 2",
  ]) {
    assert.ok(
      mistakes.some((mistake) => mistake.startsWith(beginning)),
      `${beginning}\nnot in\n${mistakes.join("\n")}`,
    );
  }
  assert.equal(mistakes.length, 10);
});

test("a required option that is missing and one given twice are mistakes", () => {
  assert.deepEqual(mistakesOf([]), ["--fleet (or DHP_FLEET) is missing"]);
  assert.deepEqual(mistakesOf(["--fleet", "a", "--fleet", "b"]), ["--fleet: given 2 times"]);
});

test("bounds hold at N and N+1", () => {
  for (const [flag, good, bad] of [
    ["--drain-timeout", "60s", "60001ms"],
    ["--drain-timeout", "1ms", "0s"],
    ["--queue-depth-max", "1000", "1001"],
    ["--queue-depth-max", "1", "0"],
    ["--listen", ":65535", ":65536"],
  ] as const) {
    assert.deepEqual(mistakesOf(["--fleet", "a", flag, good]), [], good);
    assert.equal(mistakesOf(["--fleet", "a", flag, bad]).length, 1, bad);
  }
});

test("numbers and durations in disguise are refused", () => {
  for (const bad of ["1e3", "0x10", "", " 5", "5.5", "NaN", "Infinity"]) {
    assert.equal(mistakesOf(["--fleet", "a", `--queue-depth-max=${bad}`]).length, 1, bad);
    assert.equal(mistakesOf(["--fleet", "a", `--drain-timeout=${bad}`]).length, 1, bad);
  }
});

test("a check between options runs when each is right by itself", () => {
  const checked = {
    ...spec,
    check: (values: { readonly drainTimeoutMs: number }) =>
      values.drainTimeoutMs > 20_000 ? ["--drain-timeout is longer than the other"] : [],
  };
  assert.throws(() => readOptions(checked, ["--fleet", "a", "--drain-timeout", "30s"], {}), {
    mistakes: ["--drain-timeout is longer than the other"],
  });
  readOptions(checked, ["--fleet", "a"], {});
});

test("the help names each option with its kind, default and words", () => {
  assert.throws(
    () => readOptions(spec, ["--help", "--nonsense"], {}),
    (error) => {
      assert.ok(error instanceof HelpRequested);
      for (const part of [
        "dhp-test: tests options.",
        "--fleet TEXT",
        "Name of the fleet. (required)",
        "--drain-timeout DURATION",
        "(default: 10s)",
        "--listen HOST:PORT",
        "(default: 127.0.0.1:0)",
        "--log-level debug|info",
        "--connect-to TEXT",
        "may be repeated",
      ]) {
        assert.ok(error.message.includes(part), part);
      }
      return true;
    },
  );
});

test("a secret on the command line is not repeated in the mistake", () => {
  registerSecret("sentinel-option-3f");
  const [mistake = ""] = mistakesOf(["--fleet", "sentinel-option-3f"]);
  assert.ok(mistake.startsWith("--fleet"));
  assert.ok(!mistake.includes("sentinel"));
});

test("names lead to flags and variables", () => {
  assert.equal(flagOf("drainTimeoutMs"), "--drain-timeout");
  assert.equal(variableOf("accountsFile"), "DHP_ACCOUNTS_FILE");
});
