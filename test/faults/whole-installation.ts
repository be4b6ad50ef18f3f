/** Everything that is installed in a cluster, with three objects, to be taken away by a test. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { expectDone, layerFolder } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { applyDhp, dhp, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** The folder that holds all layers. */
export const deployFolder = dirname(layerFolder("crd"));
export const objectNames: readonly string[] = ["one", "two", "three"];
/** Namespaces, kinds and doubts take their time to end. */
export const waitMsMax = 60_000;

export class Installation {
  readonly stack: Stack;

  constructor(stack: Stack) {
    this.stack = stack;
  }

  static async start(): Promise<Installation> {
    const stack = await startStack({
      withControllerManager: true,
      layers: ["crd", "policy", "controller"],
      controllerFlags: ["--back-off-max=500ms"],
      adapterFlags: ["--read-timeout=1s", "--circuit-open=500ms"],
    });
    const installation = new Installation(stack);
    for (const name of objectNames) await applyDhp(stack.cluster, dhp(name));
    for (const name of objectNames) await untilReady(stack.cluster, name);
    assert.equal(await installation.roomCount(), objectNames.length);
    return installation;
  }

  /** As the administrator; its output. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return expectDone(await this.stack.cluster.kubectl(args));
  }

  async roomCount(): Promise<number> {
    return (await listRooms(this.stack.livekit)).length;
  }

  /** Neither the kinds are left, nor what makes them work, nor rooms. */
  async untilNothingIsLeft(): Promise<void> {
    const kinds = "crd,namespace,clusterrole,validatingadmissionpolicy";
    await eventually(async () => {
      const left = await this.kubectl("get", kinds, "-o", "name");
      assert.deepEqual(
        left.split("\n").filter((name) => name.includes("dhp")),
        [],
      );
    }, waitMsMax);
    assert.equal(await this.roomCount(), 0);
  }
}
