/** A controller that comes before its CRDs waits for them and says so. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone, layerFolder } from "../../deploy/crd/cluster-fixture.ts";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { startProgram } from "../support/program.ts";
import type { Program } from "../support/program.ts";

let cluster: Cluster;
let controller: Program;

before(async () => {
  cluster = await startCluster();
  expectDone(await cluster.kubectl(["apply", "-k", layerFolder("controller")]));
  const kubeconfig = await cluster.serviceAccountKubeconfig({
    namespace: "dhp-system",
    name: "dhp-controller",
  });
  controller = await startProgram("controller/main.ts", [
    "--kubeconfig",
    kubeconfig,
    "--fleet",
    "local",
    "--admin-listen",
    "127.0.0.1:0",
  ]);
});

after(async () => {
  await controller.stop();
  await cluster.stop();
});

async function waiting(): Promise<number> {
  const { text } = await httpGet(controller.ports.adminPort, "/metrics");
  return metricValue(text, "dhp_watch_waiting_for_crd");
}

test("without CRDs the controller is not ready, says which is missing, and shows it as a metric", async () => {
  await eventually(async () => {
    const answer = await httpGet(controller.ports.adminPort, "/readyz?verbose");
    assert.equal(answer.status, 503);
    assert.match(answer.text, /digitalhumanproviders\.dhp\.example\.com/);
    assert.match(answer.text, /digitalhumanproviderclasses\.dhp\.example\.com/);
  });
  assert.equal(await waiting(), 2);
  assert.equal((await httpGet(controller.ports.adminPort, "/healthz")).status, 200);
});

test("when the CRDs appear it goes on by itself", async () => {
  expectDone(await cluster.kubectl(["apply", "-k", layerFolder("crd")]));
  await eventually(async () => {
    const answer = await httpGet(controller.ports.adminPort, "/readyz?verbose");
    assert.equal(answer.status, 200, answer.text);
  }, 30_000);
  assert.equal(await waiting(), 0);
});
