/** Installing a vendor is applying the manifests of its folder: no controller is built or started anew. */
import assert from "node:assert/strict";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { repositoryFolder } from "../../deploy/manifest-folders.ts";
import { elevenLabsEndpoint, startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

let stack: Stack;
let vendor: ElevenLabs;
let folder: string;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "dhp-install-")));
  [stack, vendor] = await Promise.all([startStack(), startElevenLabs()]);
});
after(async () => {
  await vendor?.stop();
  await stack?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The vendor's folder as an operator overlays it; here pods do not run, so the address is local. */
async function overlay(): Promise<string> {
  const base = relative(folder, join(repositoryFolder, "adapters/elevenlabs/deploy"));
  const adapter = { address: vendor.address };
  const patch = [{ op: "replace", path: "/spec/adapter", value: adapter }];
  const kustomization = {
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources: [base],
    patches: [{ target: { kind: "DigitalHumanProviderClass" }, patch: JSON.stringify(patch) }],
  };
  await writeFile(join(folder, "kustomization.yaml"), JSON.stringify(kustomization));
  return folder;
}

async function startedAt(): Promise<number> {
  const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
  return metricValue(text, "process_start_time_seconds");
}

test("an object that waits for its class is Ready once the vendor's folder is applied", async () => {
  const { pid } = stack.controller;
  const started = await startedAt();
  await applyDhp(stack.cluster, dhp("agent", { endpoint: elevenLabsEndpoint, region: "global" }));
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "agent"), "Ready");
    assert.equal(ready.reason, "NoClass", ready.message);
  });
  assert.deepEqual(await vendor.agents(), []);

  expectDone(await stack.cluster.kubectl(["apply", "-k", await overlay()]));
  const object = await untilReady(stack.cluster, "agent");
  assert.equal(object.status?.className, "elevenlabs");
  assert.deepEqual(
    (await vendor.agents()).map(({ id }) => id),
    [object.status?.providerID],
  );
  assert.equal(await startedAt(), started);
  assert.equal(stack.controller.pid, pid);
});

test("to apply the folder once more changes neither class nor object", async () => {
  const before = await readDhp(stack.cluster, "agent");
  const again = expectDone(await stack.cluster.kubectl(["apply", "-k", folder]));
  assert.doesNotMatch(again, /created/);
  assert.match(again, /digitalhumanproviderclass\S* unchanged/);
  assert.deepEqual(await readDhp(stack.cluster, "agent"), before);
  await deleteDhp(stack.cluster, "agent");
  await untilGone(stack.cluster, "agent");
  assert.deepEqual(await vendor.agents(), []);
});
