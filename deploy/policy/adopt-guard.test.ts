import { after, before, describe, it } from "node:test";
import { expectDone, expectRefused, mergePatch, provider, send } from "../crd/cluster-fixture.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import { people, startGuardedCluster } from "./guard-fixture.ts";

const adopt = { providerID: "room-1" };
const takeOver = { providerID: "room-1", takeOverFrom: { cluster: "east", uid: "u-1" } };
const needsVerb = /spec\.adopt takes over an existing vendor instance.*verb adopt/;

describe("the guard of adoption", () => {
  let cluster: Cluster;
  before(async () => {
    ({ cluster } = await startGuardedCluster());
  });
  after(() => cluster.stop());

  it("refuses spec.adopt in a create without the verb", async () => {
    const adopting = provider("created", { spec: { adopt } });
    expectRefused(await send(cluster, ["create", ...people.editor], adopting), needsVerb);
    const applied = ["apply", "--server-side", ...people.editor];
    expectRefused(await send(cluster, applied, adopting), needsVerb);
  });

  it("refuses it too where the server makes the name", async () => {
    const metadata = { name: undefined, generateName: "made-" };
    const adopting = provider("", { spec: { adopt }, metadata });
    expectRefused(await send(cluster, ["create", ...people.editor], adopting), needsVerb);
    expectDone(await send(cluster, ["create", ...people.adopter], adopting));
  });

  it("refuses adding and changing spec.adopt without the verb", async () => {
    expectDone(await send(cluster, ["create", ...people.editor], provider("edited")));
    const edit = (spec: object, who: readonly string[]) =>
      mergePatch(cluster, "dhp/edited", { spec }, who);
    expectRefused(await edit({ adopt }, people.editor), needsVerb);
    expectDone(await edit({ adopt }, people.adopter));
    expectRefused(await edit({ adopt: takeOver }, people.editor), needsVerb);
    expectRefused(await edit({ adopt: { providerID: "room-2" } }, people.editor), needsVerb);
    expectDone(await edit({ adopt: takeOver }, people.adopter));
  });

  it("lets others edit the rest of an adopting object and take spec.adopt out", async () => {
    const adopting = provider("adopting", { spec: { adopt: takeOver } });
    expectDone(await send(cluster, ["create", ...people.adopter], adopting));
    const suspend = { spec: { suspend: true } };
    expectDone(await mergePatch(cluster, "dhp/adopting", suspend, people.editor));
    const removed = { spec: { adopt: null } };
    expectDone(await mergePatch(cluster, "dhp/adopting", removed, people.editor));
  });

  it("admits objects without spec.adopt from those who may only edit", async () => {
    expectDone(await send(cluster, ["create", ...people.editor], provider("plain")));
  });
});
