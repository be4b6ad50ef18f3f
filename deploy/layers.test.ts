import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dirname } from "node:path";
import { expectDone, expectRefused, layerFolder, provider, send } from "./crd/cluster-fixture.ts";
import { startCluster, type Cluster } from "./dev-cluster/cluster.ts";
import { eventually } from "./dev-cluster/eventually.ts";

const deploy = dirname(layerFolder("crd"));
const held = { metadata: { finalizers: ["dhp.example.com/provider-cleanup"] } };
const providersCrd = "crd/digitalhumanproviders.dhp.example.com";
const waitMsMax = 60_000;

describe("the layers as a whole", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster({ withControllerManager: true });
  });
  after(() => cluster.stop());

  it("install at once, and again without a change", async () => {
    expectDone(await cluster.kubectl(["apply", "-k", deploy]));
    const again = expectDone(await cluster.kubectl(["apply", "-k", deploy]));
    const changed = again
      .trim()
      .split("\n")
      // kubectl always replaces a PodDisruptionBudget's selector, and says so.
      .filter((line) => !line.endsWith("unchanged") && !line.startsWith("poddisruptionbudget"));
    assert.deepEqual(changed, []);
  });

  it("keep an object that is held when they are removed too early, and say so", async () => {
    await eventually(async () => {
      expectDone(await send(cluster, ["create"], provider("held", held)));
    }, waitMsMax);
    expectDone(await cluster.kubectl(["delete", "-k", deploy, "--wait=false"]));
    await eventually(async () => {
      const reason = '{.status.conditions[?(@.type=="Terminating")].reason}';
      const shown = await cluster.kubectl(["get", providersCrd, "-o", `jsonpath=${reason}`]);
      assert.equal(expectDone(shown), "InstanceDeletionInProgress");
    }, waitMsMax);
    expectDone(await cluster.kubectl(["get", "dhp/held"]));
  });

  it("go completely once nothing is held", async () => {
    const patch = ["--type=merge", "-p", '{"metadata":{"finalizers":null}}'];
    expectDone(await cluster.kubectl(["patch", "dhp/held", ...patch]));
    await eventually(async () => {
      expectRefused(await cluster.kubectl(["get", providersCrd]), /NotFound/);
      expectRefused(await cluster.kubectl(["get", "namespace/dhp-system"]), /NotFound/);
    }, waitMsMax);
  });
});
