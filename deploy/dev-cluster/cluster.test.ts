import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { runCommand } from "./command.ts";
import { startCluster, type Cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";

const { environment } = readDevClusterOptions();

describe("a cluster with controller manager and audit log", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster({ withControllerManager: true, auditLog: true });
  });
  after(async () => {
    await cluster.stop();
  });

  test("kubectl and the server are of the version they are built from", async () => {
    const version = await run(cluster, ["version", "--output=json"]);
    const parsed: unknown = JSON.parse(version);
    assert.deepEqual(pick(parsed, "clientVersion", "gitVersion"), "v1.36.3");
    assert.deepEqual(pick(parsed, "serverVersion", "gitVersion"), "v1.36.3");
  });

  test("a deleted namespace really ends, with what is in it", async () => {
    await run(cluster, ["create", "namespace", "ending"]);
    await run(cluster, ["create", "configmap", "content", "--namespace=ending"]);
    await run(cluster, ["delete", "namespace", "ending", "--timeout=60s"]);
    const found = await cluster.kubectl(["get", "namespace", "ending"]);
    assert.equal(found.code, 1);
    assert.match(found.stderr, /NotFound/);
  });

  test("an object goes when its owner has gone", async () => {
    await run(cluster, ["create", "configmap", "owner"]);
    const uid = await run(cluster, [
      "get",
      "configmap",
      "owner",
      "--output=jsonpath={.metadata.uid}",
    ]);
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid };
    const dependent = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "dependent", ownerReferences: [owner] },
    };
    await run(cluster, ["create", "--filename=-"], JSON.stringify(dependent));
    await run(cluster, ["delete", "configmap", "owner"]);
    await run(cluster, ["wait", "--for=delete", "configmap/dependent", "--timeout=30s"]);
  });

  test("the pods of a Deployment carry their ServiceAccount's token", async () => {
    await run(cluster, ["create", "deployment", "web", "--image=example.com/web"]);
    const condition = "--for=jsonpath={.status.phase}=Pending";
    await run(cluster, ["wait", "--for=create", "pod", "--selector=app=web", "--timeout=30s"]);
    await run(cluster, ["wait", condition, "pod", "--selector=app=web", "--timeout=30s"]);
    const path =
      "jsonpath={.items[0].spec.volumes[0].projected.sources[0].serviceAccountToken.path}";
    const token = await run(cluster, ["get", "pods", "--selector=app=web", `--output=${path}`]);
    assert.equal(token, "token");
    await run(cluster, ["delete", "deployment", "web"]);
  });

  test("a ServiceAccount may do what RBAC gives it and nothing more", async () => {
    await run(cluster, ["create", "namespace", "team"]);
    await run(cluster, ["create", "serviceaccount", "reader", "--namespace=team"]);
    const kubeconfig = await cluster.serviceAccountKubeconfig({
      namespace: "team",
      name: "reader",
    });
    const list = ["get", "configmaps", "--namespace=team"];
    const refused = await cluster.kubectl(list, { kubeconfig });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Forbidden.*system:serviceaccount:team:reader/);

    const grant = ["create", "rolebinding", "reader", "--namespace=team", "--clusterrole=view"];
    await run(cluster, [...grant, "--serviceaccount=team:reader"]);
    // The role is filled, and the authorizer sees the binding, a moment later.
    await eventually(async () => {
      const { code, stderr } = await cluster.kubectl(list, { kubeconfig });
      assert.equal(code, 0, stderr);
    });
    const secrets = await cluster.kubectl(["get", "secrets", "--namespace=team"], { kubeconfig });
    assert.equal(secrets.code, 1);
  });

  test("a ServiceAccount's kubeconfig holds a token and no other credential", async () => {
    await run(cluster, ["create", "serviceaccount", "lean"]);
    const account = { namespace: "default", name: "lean" };
    const path = await cluster.serviceAccountKubeconfig(account);
    const first: unknown = JSON.parse(await readFile(path, "utf8"));
    assert.deepEqual(Object.keys(Object(pick(first, "users", "0", "user"))), ["token"]);
    assert.equal((await stat(path)).mode & 0o077, 0);
    const again = await cluster.serviceAccountKubeconfig({ ...account, expirationSeconds: 600 });
    assert.equal(again, path);
    assert.notDeepEqual(JSON.parse(await readFile(path, "utf8")), first);
  });

  test("a token for a ServiceAccount that does not exist is refused by name", async () => {
    await assert.rejects(
      cluster.serviceAccountKubeconfig({ namespace: "default", name: "nobody" }),
      /ServiceAccount default\/nobody/,
    );
  });

  test("the audit log has each request once, with its user and its answer", async () => {
    await run(cluster, ["create", "configmap", "counted"]);
    const change = ["annotate", "configmap", "counted", "--overwrite"];
    for (const value of ["a", "b", "c"]) await run(cluster, [...change, `note=${value}`]);
    const requests = (await cluster.audit()).filter(
      ({ resource, name }) => resource === "configmaps" && name === "counted",
    );
    const patches = requests.filter(({ verb }) => verb === "patch");
    assert.deepEqual(
      patches.map(({ user, namespace, group }) => ({ user, namespace, group })),
      Array.from({ length: 3 }, () => ({ user: "admin", namespace: "default", group: "" })),
    );
    assert.equal(requests.find(({ verb }) => verb === "create")?.code, 201);
    assert.equal(new Set(requests.map(({ id }) => id)).size, requests.length);
  });
});

describe("clusters of their own", () => {
  test("two clusters at once share nothing", async (t) => {
    const [left, right] = await Promise.all([startCluster(), startCluster()]);
    t.after(() => Promise.all([left.stop(), right.stop()]));
    assert.notEqual(left.url, right.url);
    await run(left, ["create", "namespace", "only-left"]);
    assert.equal((await right.kubectl(["get", "namespace", "only-left"])).code, 1);
    const stranger = { kubeconfig: left.adminKubeconfig };
    const args = ["get", "namespaces", `--server=${right.url}`];
    assert.equal((await right.kubectl(args, stranger)).code, 1);
  });

  test("a restart keeps data, address and credentials, also after a kill", async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const { url } = cluster;
    await run(cluster, ["create", "serviceaccount", "lasting"]);
    const kubeconfig = await cluster.serviceAccountKubeconfig({
      namespace: "default",
      name: "lasting",
    });
    await cluster.restart();
    await run(cluster, ["create", "configmap", "written-before-the-kill"]);
    await cluster.kill();
    assert.equal((await cluster.kubectl(["get", "namespaces"])).code, 1);
    await cluster.restart();
    assert.equal(cluster.url, url);
    await run(cluster, ["get", "configmap", "written-before-the-kill"]);
    const who = await cluster.kubectl(["auth", "whoami"], { kubeconfig });
    assert.match(who.stdout, /system:serviceaccount:default:lasting/);
  });

  test("a paused cluster answers nothing until it is resumed", async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const ask = ["get", "namespaces", "--request-timeout=500ms"];
    cluster.pause();
    assert.equal((await cluster.kubectl(ask)).code, 1);
    cluster.resume();
    await run(cluster, ["get", "namespaces"]);
    cluster.pause();
  });

  test("a stopped cluster leaves no process and no folder, and may be stopped again", async () => {
    const cluster = await startCluster({ withControllerManager: true });
    assert.equal((await processesOf(cluster.folder)).length, 2);
    await cluster.stop();
    assert.deepEqual(await processesOf(cluster.folder), []);
    await assert.rejects(stat(cluster.folder), { code: "ENOENT" });
    await cluster.stop();
  });

  test("requests are not told by a cluster without audit log", async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    await assert.rejects(cluster.audit(), /auditLog/);
  });
});

/** Runs kubectl as the administrator and fails the test when it fails. */
async function run(cluster: Cluster, args: readonly string[], input?: string): Promise<string> {
  const result = await cluster.kubectl(args, input === undefined ? {} : { input });
  assert.equal(result.code, 0, `kubectl ${args.join(" ")}: ${result.stderr}`);
  return result.stdout;
}

async function processesOf(folder: string): Promise<readonly string[]> {
  const { stdout } = await runCommand("ps", ["-eo", "args"], { environment });
  return stdout.split("\n").filter((line) => line.includes(`--folder=${folder}`));
}

function pick(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );
}
