import assert from "node:assert/strict";
import { appendFile, cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import { ensurePrometheus } from "./prometheus-package.ts";

test("the programs are there, and a copy of them is used only while it is intact", async (t) => {
  const { prometheus, promtool } = await ensurePrometheus();
  const versions = await runCommand(promtool, ["--version"]);
  assert.match(versions.stdout + versions.stderr, /^promtool, version 2\.\d+/);
  const cacheFolder = await mkdtemp(join(tmpdir(), "dhp-prometheus-cache-"));
  t.after(() => rm(cacheFolder, { recursive: true, force: true }));
  // Nothing can be fetched with this.
  const options = { cacheFolder, environment: { PATH: cacheFolder } };
  const copy = join(cacheFolder, "prometheus/debian");
  await cp(dirname(prometheus), copy, { recursive: true });
  assert.equal((await ensurePrometheus(options)).promtool, join(copy, "promtool"));
  await appendFile(join(copy, "promtool"), "more");
  await assert.rejects(ensurePrometheus(options), {
    message: /^cannot fetch Prometheus: no apt-get on this machine\..*Debian 12[^\n]*$/,
  });
});
