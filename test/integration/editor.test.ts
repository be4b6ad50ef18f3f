/** Somebody with the cluster's role edit and nothing more, and kubectl: the samples, from apply to delete. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone, expectRefused, layerFolder } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const samples = layerFolder("samples");
const names = ["evening-gala", "hangzhou-anchor", "morning-show"];
let stack: Stack;
let kubeconfig: string;

before(async () => {
  stack = await startStack({
    withControllerManager: true,
    auditLog: true,
    layers: ["crd", "policy", "controller"],
  });
  await reachSampleHosts();
  await makeEditor();
  const editor = { namespace: "default", name: "editor" };
  kubeconfig = await stack.cluster.serviceAccountKubeconfig(editor);
  const mayCreate = ["auth", "can-i", "create", "dhp"];
  // The role edit is filled from others by a controller of the cluster.
  await eventually(async () => expectDone(await kubectl(...mayCreate)), 30_000);
});
after(() => stack.stop());

async function makeEditor(): Promise<void> {
  const byAdmin = async (...args: readonly string[]) =>
    expectDone(await stack.cluster.kubectl(args));
  await byAdmin("create", "namespace", "team");
  await byAdmin("create", "serviceaccount", "editor", "--namespace=default");
  const binding = ["create", "rolebinding", "editor", "--clusterrole=edit"];
  for (const namespace of ["default", "team"]) {
    const subject = "--serviceaccount=default:editor";
    await byAdmin(...binding, subject, `--namespace=${namespace}`);
  }
}

/** The adapter again, with ways to the hosts that the samples name. */
async function reachSampleHosts(): Promise<void> {
  const { grpcPort } = stack.adapter.ports;
  await stack.adapter.stop();
  const hosts = ["hangzhou.livekit.example.com", "gala.livekit.example.com"];
  const ways = hosts.map((host) => `--connect-to=https://${host}=${stack.livekit.url}`);
  await stack.startAdapter(grpcPort, ways);
}

function kubectl(...args: readonly string[]) {
  return stack.cluster.kubectl(args, { kubeconfig });
}

async function done(...args: readonly string[]): Promise<string> {
  return expectDone(await kubectl(...args));
}

test("applies the samples at the client and waits until they are Ready", async () => {
  await done("apply", "-k", samples);
  await done("wait", "--for=condition=Ready", "dhp", "--all", "--timeout=30s");
  assert.equal((await listRooms(stack.livekit)).length, names.length);
  const again = (await done("apply", "-k", samples)).trim().split("\n");
  assert.ok(again.every((line) => line.endsWith("unchanged")));
});

test("applies them at the server as well, and the second time without a change", async () => {
  const apply = ["apply", "--server-side", "-k", samples, "--namespace=team"];
  await done(...apply);
  const wait = ["wait", "--for=condition=Ready", "dhp", "--all", "--timeout=30s"];
  await done(...wait, "--namespace=team");
  const versions = ["get", "dhp", "-o", "jsonpath={.items[*].metadata.resourceVersion}"];
  const before = await done(...versions, "--namespace=team");
  await done(...apply);
  assert.equal(await done(...versions, "--namespace=team"), before);
  assert.equal((await listRooms(stack.livekit)).length, 2 * names.length);
});

test("sees in the columns what counts, and more with -o wide", async () => {
  const [header = "", ...rows] = (await done("get", "dhp")).trim().split("\n");
  assert.deepEqual(header.split(/ +/), ["NAME", "REGION", "PROVIDERID", "READY", "REASON", "AGE"]);
  assert.deepEqual(
    rows.map((row) => row.split(/ +/)[0]),
    names,
  );
  for (const row of rows) assert.match(row, /dhp-\w+\/RM_\w+ +True +ProviderReady/);
  const wide = (await done("get", "dhp", "-o", "wide")).split("\n")[0]?.split(/ +/) ?? [];
  const more = ["CLASS", "ENDPOINT", "AVAILABLE", "LIMITED", "BILLING", "MESSAGE"];
  assert.deepEqual(wide.slice(6), more);
});

test("gets every field of spec explained", async () => {
  const shown = await done("explain", "dhp.spec");
  const crd = ["get", "crd", "digitalhumanproviders.dhp.example.com", "-o", "json"];
  const { spec } = JSON.parse(expectDone(await stack.cluster.kubectl(crd)));
  const { properties } = spec.versions[0].schema.openAPIV3Schema.properties.spec;
  for (const field of Object.keys(properties)) {
    assert.match(shown, new RegExp(`^  ${field}\t<.*>`, "m"));
    const explained = await done("explain", `dhp.spec.${field}`);
    assert.doesNotMatch(explained, /<empty>/, `${field} has no description`);
  }
});

test("may not write classes", async () => {
  const patch = ["patch", "dhpclass/livekit", "--type=merge", "-p", '{"spec":{"account":"x"}}'];
  expectRefused(await kubectl(...patch), /Forbidden/);
});

test("deletes them, the protected one when its protection is lifted", async () => {
  await done("delete", "dhp", "morning-show", "hangzhou-anchor", "--timeout=30s");
  await done("delete", "dhp", "evening-gala", "--wait=false");
  await done(
    "wait",
    "dhp/evening-gala",
    "--for=jsonpath={.status.conditions[?(@.type=='Ready')].reason}=DeleteBlocked",
    "--timeout=10s",
  );
  const lift = '{"spec":{"deletionProtection":false}}';
  await done("patch", "dhp", "evening-gala", "--type=merge", "-p", lift);
  await done("wait", "dhp/evening-gala", "--for=delete", "--timeout=30s");
  assert.equal((await listRooms(stack.livekit)).length, names.length);
});

/** Rights for what does not happen here. */
const reserved = new Set([
  // A live read after a conflict, and the paged list where streaming lists fail.
  "get dhp.example.com/digitalhumanproviders",
  "list dhp.example.com/digitalhumanproviders",
  "list dhp.example.com/digitalhumanproviderclasses",
  // A repeated event.
  "patch events.k8s.io/events",
]);

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

test("all this took each right that the controller has", async () => {
  const roles = ["get", "clusterrole/dhp-controller", "role/dhp-controller-leader-election"];
  const stored = await stack.cluster.kubectl([...roles, "--namespace=dhp-system", "-o", "json"]);
  const items: readonly { readonly rules: readonly Rule[] }[] = JSON.parse(
    expectDone(stored),
  ).items;
  const granted = items.flatMap(({ rules }) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${apiGroups[0]}/${resource}`)),
    ),
  );
  const used = new Set(
    (await stack.cluster.audit())
      .filter(({ userAgent }) => userAgent.startsWith("dhp-controller"))
      .map(({ verb, group, resource, subresource }) =>
        [`${verb} ${group}`, resource, subresource].filter((part) => part !== "").join("/"),
      ),
  );
  assert.ok(granted.length > 10);
  const unused = granted.filter((right) => !used.has(right) && !reserved.has(right));
  assert.deepEqual(unused, []);
});
