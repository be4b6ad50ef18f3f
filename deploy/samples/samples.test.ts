import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { eventually } from "../dev-cluster/eventually.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import { expectDone, layerFolder, startClusterWith } from "../crd/cluster-fixture.ts";

const livekitClass = join(layerFolder("samples"), "../../adapters/livekit/deploy/class.yaml");

interface Sample {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly endpoint?: string;
    readonly className?: string;
    readonly displayName?: string;
    readonly endpointHosts?: readonly string[];
  };
}

describe("the samples", () => {
  let cluster: Cluster;
  let items: readonly Sample[];
  before(async () => {
    cluster = await startClusterWith(["crd", "policy", "controller", "samples"]);
    expectDone(await cluster.kubectl(["apply", "-f", livekitClass]));
    const stored = ["get", "dhpclass,dhp", "-o", "json"];
    items = JSON.parse(expectDone(await cluster.kubectl(stored))).items;
  });
  after(() => cluster.stop());

  it("are three providers, one of them with a Chinese name", () => {
    assert.equal(items.filter(({ kind }) => kind === "DigitalHumanProvider").length, 3);
    assert.ok(items.some(({ spec }) => /\p{Script=Han}/u.test(spec.displayName ?? "")));
  });

  it("get LiveKit's class, by name or by host", () => {
    const hosts = items.flatMap(({ spec }) => spec.endpointHosts ?? []);
    const matches = (host: string) =>
      hosts.some((known) =>
        known.startsWith("*.") ? host.endsWith(known.slice(1)) : host === known,
      );
    for (const { metadata, spec } of items) {
      if (spec.endpoint === undefined) continue;
      assert.ok(matches(new URL(spec.endpoint).hostname), metadata.name);
      assert.ok([undefined, "livekit"].includes(spec.className), metadata.name);
    }
  });

  it("change nothing when they are applied again", async () => {
    const again = expectDone(await cluster.kubectl(["apply", "-k", layerFolder("samples")]));
    assert.equal(again.match(/unchanged/g)?.length, 3);
  });

  it("go again as a whole while no controller holds them", async () => {
    expectDone(await cluster.kubectl(["delete", "-k", layerFolder("samples")]));
    await eventually(async () => {
      assert.equal(expectDone(await cluster.kubectl(["get", "dhp", "-o", "name"])), "");
    });
  });
});
