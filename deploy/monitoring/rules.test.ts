import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { ensurePrometheus } from "../../test/support/prometheus-package.ts";
import { expectDone } from "../crd/cluster-fixture.ts";
import { runCommand } from "../dev-cluster/command.ts";
import { renderFolder, repositoryFolder } from "../manifest-folders.ts";

const folder = join(repositoryFolder, "deploy/monitoring");

async function promtool(...args: readonly string[]): Promise<string> {
  const { promtool: program } = await ensurePrometheus();
  return expectDone(await runCommand(program, args, { cwd: folder }));
}

async function readYaml(name: string) {
  return parse(await readFile(join(folder, name), "utf8"));
}

interface AlertCase {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

test("the rules are sound", async () => {
  assert.match(await promtool("check", "rules", "--lint=all", "rules.yaml"), /SUCCESS: 2\d rules/);
});

test("the rules do what their tests say", async () => {
  assert.match(await promtool("test", "rules", "rules-tests.yaml"), /SUCCESS/);
});

test("each alert is tested while it fires and while it does not", async () => {
  const { groups }: { groups: { rules: { alert?: string }[] }[] } = await readYaml("rules.yaml");
  const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []));
  const { tests }: { tests: { alert_rule_test?: AlertCase[] }[] } =
    await readYaml("rules-tests.yaml");
  const cases = tests.flatMap(({ alert_rule_test: tried }) => tried ?? []);
  const tested = (fires: boolean) =>
    new Set(cases.filter((one) => one.exp_alerts.length > 0 === fires).map((one) => one.alertname));
  assert.ok(alerts.length > 10);
  assert.deepEqual(tested(true), new Set(alerts));
  assert.deepEqual(tested(false), new Set(alerts));
});

test("the kustomization carries rules and scraping as they are", async () => {
  const [config, ...more] = await renderFolder("deploy/monitoring");
  assert.equal(more.length, 0);
  for (const name of ["rules.yaml", "scrape.yaml"]) {
    const text = await readFile(join(folder, name), "utf8");
    assert.ok(JSON.stringify(config).includes(JSON.stringify(text)), name);
  }
});
