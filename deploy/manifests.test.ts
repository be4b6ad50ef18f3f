/** All manifests of this repository, applied as people apply them, and the pods that come of them. */
import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { join } from "node:path";
import { expectDone, expectRefused, send, untilEstablished } from "./crd/cluster-fixture.ts";
import { startCluster, type Cluster } from "./dev-cluster/cluster.ts";
import { eventually } from "./dev-cluster/eventually.ts";
import {
  containerOf,
  deploymentsOf,
  installedFolders,
  renderFolder,
  repositoryFolder,
  vendorFolders,
  type Deployment,
} from "./manifest-folders.ts";

const everything = join(repositoryFolder, "deploy/everything");
const crds = join(repositoryFolder, "deploy/crd");
const namespace = "--namespace=dhp-system";

async function installKinds(cluster: Cluster, flags: readonly string[]): Promise<void> {
  expectDone(await cluster.kubectl(["apply", "-k", crds, ...flags]));
  await untilEstablished(cluster);
}

/**
 * The lines of `kubectl apply` that tell of a change. It says "configured" of each
 * PodDisruptionBudget, whose selector it always replaces: stored versions tell better there.
 */
function changesIn(applied: string): readonly string[] {
  const lines = applied.trim().split("\n");
  return lines.filter(
    (line) => !line.endsWith("unchanged") && !line.startsWith("poddisruptionbudget"),
  );
}

/** What is stored, in its exact version. */
async function storedVersions(cluster: Cluster): Promise<string> {
  const versions =
    "{range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}";
  const got = ["get", "-k", everything, "-o", `jsonpath=${versions}`];
  return expectDone(await cluster.kubectl(got));
}

describe("all manifests, applied at the client", () => {
  let cluster: Cluster;
  let deployments: readonly Deployment[];
  before(async () => {
    cluster = await startCluster({ withControllerManager: true });
    deployments = deploymentsOf(await renderFolder("deploy/everything"));
  });
  after(() => cluster.stop());

  it("install without a warning, and again without a change", async () => {
    await installKinds(cluster, []);
    const first = await cluster.kubectl(["apply", "-k", everything]);
    expectDone(first);
    assert.equal(first.stderr, "");
    const again = expectDone(await cluster.kubectl(["apply", "-k", everything]));
    assert.deepEqual(changesIn(again), []);
  });

  it("install folder by folder to the same", async () => {
    for (const folder of installedFolders()) {
      const path = join(repositoryFolder, folder);
      const applied = expectDone(await cluster.kubectl(["apply", "-k", path]));
      assert.deepEqual(changesIn(applied), []);
    }
  });

  it("make all pods, which Pod Security restricted lets in", async () => {
    assert.ok(deployments.length >= 1 + vendorFolders().length);
    await eventually(async () => {
      for (const { metadata, spec } of deployments) {
        const selector = `--selector=app.kubernetes.io/name=${metadata.name}`;
        const pods = await cluster.kubectl(["get", "pods", namespace, selector, "-o", "name"]);
        assert.equal(expectDone(pods).trim().split("\n").length, spec.replicas, metadata.name);
      }
    });
    const failed = ["get", "events", "-A", "--field-selector=reason=FailedCreate", "-o", "name"];
    assert.equal(expectDone(await cluster.kubectl(failed)), "");
  });

  it("would not make a pod that wants more", async () => {
    const [deployment] = deployments;
    assert.ok(deployment);
    const { containers, ...pod } = deployment.spec.template.spec;
    const spec = { ...pod, containers: [{ ...containers[0], name: "root", securityContext: {} }] };
    const greedy = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "greedy", namespace: "dhp-system" },
      spec,
    };
    expectRefused(await send(cluster, ["create"], greedy), /violates PodSecurity "restricted/);
  });

  it("give each adapter's Service a name that its class leads to", async () => {
    const addresses = "{range .items[*]}{.spec.adapter.address}{'\\n'}{end}";
    const classes = ["get", "dhpclass", "-o", `jsonpath=${addresses}`];
    for (const address of expectDone(await cluster.kubectl(classes))
      .trim()
      .split("\n")) {
      const [host = "", port] = address.split(":");
      const [service = "", inNamespace] = host.split(".");
      const ports = ["get", "service", service, `--namespace=${inNamespace}`];
      const shown = await cluster.kubectl([...ports, "-o", "jsonpath={.spec.ports[*].port}"]);
      assert.equal(expectDone(shown), port);
    }
  });

  it("come with examples that the API server accepts", async () => {
    for (const folder of vendorFolders()) {
      const example = join(repositoryFolder, folder, "credential.example.yaml");
      expectDone(await cluster.kubectl(["apply", "--dry-run=server", "-f", example]));
    }
  });
});

describe("all manifests, applied at the server", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  it("install without a warning, and again without a change", async () => {
    await installKinds(cluster, ["--server-side"]);
    const apply = ["apply", "--server-side", "-k", everything];
    const first = await cluster.kubectl(apply);
    expectDone(first);
    assert.equal(first.stderr, "");
    const before = await storedVersions(cluster);
    expectDone(await cluster.kubectl(apply));
    assert.equal(await storedVersions(cluster), before);
  });

  it("go over to the client's hand, there without a change at the second time, and back", async () => {
    expectDone(await cluster.kubectl(["apply", "-k", everything]));
    const before = await storedVersions(cluster);
    expectDone(await cluster.kubectl(["apply", "-k", everything]));
    assert.equal(await storedVersions(cluster), before);
    expectDone(await cluster.kubectl(["apply", "--server-side", "-k", everything]));
  });
});

test("everything is the layers and each vendor that has manifests", async () => {
  const names = (manifests: readonly object[]) =>
    manifests.map((manifest) => JSON.stringify(manifest)).sort();
  const folders = await Promise.all(installedFolders().map(renderFolder));
  assert.deepEqual(names(await renderFolder("deploy/everything")), names(folders.flat()));
});

for (const folder of ["deploy/controller", ...vendorFolders()]) {
  test(`${folder}: its container is bounded, probed, and cannot write`, async () => {
    const [deployment] = deploymentsOf(await renderFolder(folder));
    assert.ok(deployment);
    const container = containerOf(deployment);
    assert.equal(container.securityContext["readOnlyRootFilesystem"], true);
    const { requests, limits } = container.resources;
    assert.ok(requests["cpu"] && requests["memory"] && limits["memory"]);
    const { startupProbe, readinessProbe, livenessProbe } = container;
    for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
      assert.ok(container.ports.some(({ name }) => name === probe?.httpGet.port));
    }
    const listened = container.args.map((flag) => /-?listen=0\.0\.0\.0:(\d+)$/.exec(flag)?.[1]);
    const opened = listened.filter((port) => port !== undefined).map(Number);
    assert.deepEqual(new Set(opened), new Set(container.ports.map((port) => port.containerPort)));
    assert.equal(readinessProbe?.httpGet.path, "/readyz");
    assert.equal(livenessProbe?.httpGet.path, "/healthz");
  });

  test(`${folder}: the grace period is longer than preStop, drain and closing`, async () => {
    const [deployment] = deploymentsOf(await renderFolder(folder));
    assert.ok(deployment);
    const { args, lifecycle } = containerOf(deployment);
    const drain = /^--drain(?:-timeout)?=(\d+)s$/m.exec(args.join("\n"))?.[1];
    assert.ok(drain, "the drain is said in the manifest");
    // Closing: stopMarginMs of controller/main.ts, the longer of the two.
    const needed = (lifecycle?.preStop.sleep.seconds ?? 0) + Number(drain) + 10;
    assert.ok(deployment.spec.template.spec.terminationGracePeriodSeconds >= needed);
  });
}
