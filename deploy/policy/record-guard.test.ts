import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  expectDone,
  expectRefused,
  finalizer,
  firstPlacementAnnotation,
  mergePatch,
  placement,
  provider,
  read,
  send,
  type Manifest,
} from "../crd/cluster-fixture.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { CommandResult } from "../dev-cluster/command.ts";
import {
  createRecorded,
  firstPlacement,
  people,
  recordAt,
  startGuardedCluster,
  type GuardedCluster,
  type WrittenRecord,
} from "./guard-fixture.ts";

const withoutFinalizer = { metadata: { finalizers: null } };
const saysWhyAndHow =
  /provider-cleanup holds .*may still be billed.*use kubectl delete.*dhp\.example\.com\/abandon=<reason>.*verb abandon/;

type Removal = (cluster: Cluster, name: string) => Promise<CommandResult>;

/** Every way in which kubectl can take a finalizer off an object that already has it. */
const removals: Readonly<{ [way: string]: Removal }> = {
  "a merge patch": (cluster, name) => mergePatch(cluster, `dhp/${name}`, withoutFinalizer),
  "a JSON patch": (cluster, name) => {
    const patch = JSON.stringify([{ op: "remove", path: "/metadata/finalizers/0" }]);
    return cluster.kubectl(["patch", `dhp/${name}`, "--type=json", "-p", patch]);
  },
  "a replace by what was read": async (cluster, name) => {
    const stored = await read(cluster, [`dhp/${name}`]);
    const metadata = { ...stored.metadata, finalizers: [] };
    return await send(cluster, ["replace"], provider(name, { metadata }));
  },
  "a replace by the manifest": (cluster, name) => send(cluster, ["replace"], provider(name)),
  "an edit": (cluster, name) =>
    cluster.kubectl(["edit", `dhp/${name}`], {
      environment: { KUBE_EDITOR: "sed -i /provider-cleanup/d" },
    }),
};

/** The states in which a vendor instance may exist. */
const records: Readonly<{ [state: string]: WrittenRecord }> = {
  "a placement is recorded": { placements: [placement()] },
  "only the first placement is noted": { firstPlacementUid: "own" },
};

describe("the guard of the record", () => {
  let guarded: GuardedCluster;
  let cluster: Cluster;
  let made = 0;
  before(async () => {
    guarded = await startGuardedCluster();
    ({ cluster } = guarded);
  });
  after(() => cluster.stop());

  const freshName = () => `guarded-${(made += 1)}`;

  async function recorded(record: WrittenRecord): Promise<string> {
    const name = freshName();
    await createRecorded(guarded, name, record);
    return name;
  }

  async function finalizersOf(name: string): Promise<readonly string[]> {
    return (await read(cluster, [`dhp/${name}`])).metadata.finalizers ?? [];
  }

  for (const [state, record] of Object.entries(records)) {
    for (const [way, remove] of Object.entries(removals)) {
      it(`keeps the finalizer against ${way} while ${state}`, async () => {
        const name = await recorded(record);
        expectRefused(await remove(cluster, name), saysWhyAndHow);
        assert.deepEqual(await finalizersOf(name), [finalizer]);
      });
    }
  }

  for (const [kind, flags] of [
    ["server-side", ["--server-side", "--field-manager=gitops"]],
    ["client-side", []],
  ] as const) {
    it(`keeps a finalizer that came by ${kind} apply against a later apply`, async () => {
      const name = freshName();
      const applied = provider(name, { metadata: { finalizers: [finalizer] } });
      expectDone(await send(cluster, ["apply", ...flags], applied));
      await recordAt(guarded, name, { placements: [placement()] });
      expectRefused(await send(cluster, ["apply", ...flags], provider(name)), saysWhyAndHow);
      assert.deepEqual(await finalizersOf(name), [finalizer]);
    });
  }

  it("keeps the finalizer of an object that is being deleted, forced or not", async () => {
    const name = await recorded({ placements: [placement()] });
    expectDone(await cluster.kubectl(["delete", `dhp/${name}`, "--force", "--wait=false"]));
    expectRefused(await mergePatch(cluster, `dhp/${name}`, withoutFinalizer), saysWhyAndHow);
    assert.deepEqual(await finalizersOf(name), [finalizer]);
  });

  for (const [way, remove] of Object.entries(removals)) {
    it(`lets the finalizer go by ${way} while nothing is recorded`, async () => {
      const name = await recorded({});
      expectDone(await remove(cluster, name));
      assert.deepEqual(await finalizersOf(name), []);
    });
  }

  it("lets the finalizer go while the note carries another object's uid", async () => {
    const name = await recorded({ firstPlacementUid: "6f1e0000-0000-0000-0000-000000000000" });
    expectDone(await mergePatch(cluster, `dhp/${name}`, withoutFinalizer, people.editor));
    assert.deepEqual(await finalizersOf(name), []);
  });

  it("names the number of placements and the first endpoint", async () => {
    const endpoint = "https://b.example.com";
    const name = await recorded({ placements: [placement({ endpoint }), placement()] });
    expectRefused(
      await mergePatch(cluster, `dhp/${name}`, withoutFinalizer),
      /holds 2 recorded vendor placement\(s\), the first at https:\/\/b\.example\.com,/,
    );
  });

  it("lets the controller shorten the record and take its finalizer off", async () => {
    const name = await recorded({ placements: [placement()], firstPlacementUid: "own" });
    const status = { status: { placements: [] } };
    expectDone(await guarded.patchAsController(`dhp/${name}`, status, "/status"));
    const annotations = { [firstPlacementAnnotation]: null };
    const patch = { metadata: { finalizers: null, annotations } };
    expectDone(await guarded.patchAsController(`dhp/${name}`, patch));
    assert.deepEqual(await finalizersOf(name), []);
  });

  function abandonPatch(reason: string): Manifest {
    const annotations = { "dhp.example.com/abandon": reason };
    return { metadata: { finalizers: null, annotations } };
  }

  it("refuses to abandon with a reason and without the verb", async () => {
    const name = await recorded({ placements: [placement()] });
    const patch = abandonPatch("vendor is bankrupt");
    expectRefused(
      await mergePatch(cluster, `dhp/${name}`, patch, people.editor),
      /abandon=<reason> \(now given\) and hold the verb abandon/,
    );
  });

  for (const who of ["abandoner", "owner"] as const) {
    it(`refuses to abandon with the verb of the ${who} and without a reason`, async () => {
      const name = await recorded({ placements: [placement()] });
      for (const patch of [withoutFinalizer, abandonPatch("  ")]) {
        expectRefused(
          await mergePatch(cluster, `dhp/${name}`, patch, people[who]),
          /abandon=<reason> \(now missing\) and hold the verb abandon/,
        );
      }
    });
  }

  it("lets an object be abandoned with both reason and verb", async () => {
    for (const record of Object.values(records)) {
      const name = await recorded(record);
      expectDone(await cluster.kubectl(["delete", `dhp/${name}`, "--wait=false"]));
      const patch = abandonPatch("vendor is bankrupt");
      expectDone(await mergePatch(cluster, `dhp/${name}`, patch, people.abandoner));
      expectRefused(await cluster.kubectl(["get", `dhp/${name}`]), /NotFound/);
    }
  });

  it("admits a restored or cloned object that carries another object's note", async () => {
    const name = freshName();
    const annotations = { [firstPlacementAnnotation]: firstPlacement("an-older-uid") };
    const restored = provider(name, { metadata: { annotations, finalizers: [finalizer] } });
    expectDone(await send(cluster, ["create", ...people.editor], restored));
    const patch = { metadata: { annotations: { [firstPlacementAnnotation]: null } } };
    expectDone(await mergePatch(cluster, `dhp/${name}`, patch, people.editor));
  });

  it("refuses to change, remove or forge the first-placement note", async () => {
    const noted = await recorded({ firstPlacementUid: "own" });
    const bare = await recorded({});
    const { uid } = (await read(cluster, [`dhp/${bare}`])).metadata;
    const attempts = [
      [noted, null],
      [noted, firstPlacement("another-uid")],
      [bare, firstPlacement(uid)],
    ] as const;
    for (const [name, text] of attempts) {
      const patch = { metadata: { annotations: { [firstPlacementAnnotation]: text } } };
      expectRefused(
        await mergePatch(cluster, `dhp/${name}`, patch, people.owner),
        /first-placement is the controller's record.*cannot be added, changed or removed/,
      );
    }
  });

  it("refuses others' writes of status.placements and admits the rest of status", async () => {
    const full = await recorded({ placements: [placement()] });
    const empty = await recorded({});
    const attempts = [
      [full, []],
      [full, null],
      [full, [placement({ providerID: "room-2" })]],
      [empty, [placement()]],
    ] as const;
    const args = ["--subresource=status", ...people.owner];
    for (const [name, placements] of attempts) {
      expectRefused(
        await mergePatch(cluster, `dhp/${name}`, { status: { placements } }, args),
        /status\.placements is the controller's record.*cannot be changed by others/,
      );
    }
    const status = { status: { providerID: "room-9" } };
    expectDone(await mergePatch(cluster, `dhp/${full}`, status, args));
    assert.deepEqual((await read(cluster, [`dhp/${full}`])).status?.["placements"], [placement()]);
  });

  it("refuses a status replace that leaves the placements out", async () => {
    const name = await recorded({ placements: [placement()] });
    const bare = { ...provider(name), status: {} };
    expectRefused(
      await send(cluster, ["replace", "--subresource=status"], bare),
      /status\.placements is the controller's record/,
    );
  });

  it("leaves everything that is the user's to the user", async () => {
    const name = await recorded({ placements: [placement()], firstPlacementUid: "own" });
    const patch = {
      metadata: {
        labels: { team: "live" },
        annotations: { "dhp.example.com/reconcile-requested-at": "now" },
        finalizers: [finalizer, "example.com/theirs"],
      },
      spec: { region: "us-east-1", suspend: true },
    };
    expectDone(await mergePatch(cluster, `dhp/${name}`, patch, people.editor));
    const theirsGone = { metadata: { finalizers: [finalizer] } };
    expectDone(await mergePatch(cluster, `dhp/${name}`, theirsGone, people.editor));
    expectDone(await cluster.kubectl(["delete", `dhp/${name}`, "--wait=false", ...people.editor]));
  });
});
