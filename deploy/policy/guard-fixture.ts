import assert from "node:assert/strict";
import {
  expectDone,
  finalizer,
  firstPlacementAnnotation,
  mergePatch,
  placement,
  provider,
  read,
  send,
  startClusterWith,
  type Manifest,
} from "../crd/cluster-fixture.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { CommandResult } from "../dev-cluster/command.ts";
import { eventually } from "../dev-cluster/eventually.ts";
import { connectController, type ControllerPatch } from "./controller-writes.ts";

/** People of the tests, each bound to roles in namespace default. */
export const people = {
  /** May edit providers and no more. */
  editor: ["--as=editor"],
  /** May also give up vendor instances. */
  abandoner: ["--as=abandoner"],
  /** May also take over vendor instances. */
  adopter: ["--as=adopter"],
  /** Holds every verb on providers and their status. */
  owner: ["--as=owner"],
} as const;

/** The ClusterRoles of each person: those of deploy/controller, and those of ownRoles. */
const rolesOf = {
  editor: ["dhp-view", "dhp-edit"],
  abandoner: ["dhp-view", "dhp-edit", "abandon"],
  adopter: ["dhp-view", "dhp-edit", "adopt"],
  owner: ["everything"],
} as const satisfies { [person in keyof typeof people]: readonly string[] };
const ownRoles = { abandon: "abandon", adopt: "adopt", everything: "*" } as const;
const waitMsMax = 30_000;

/** A cluster in which the guards act, and the controller's hand. */
export interface GuardedCluster {
  readonly cluster: Cluster;
  readonly patchAsController: ControllerPatch;
}

/** Starts a cluster with kinds, guards, roles and people, and waits until all of them act. */
export async function startGuardedCluster(): Promise<GuardedCluster> {
  const cluster = await startClusterWith(["crd", "policy", "controller"]);
  try {
    const access = { apiVersion: "v1", kind: "List", items: [...clusterRoles(), ...bindings()] };
    expectDone(await send(cluster, ["create"], access));
    const guarded = { cluster, patchAsController: await connectController(cluster) };
    await waitForGuards(guarded);
    return guarded;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

function clusterRoles(): Manifest[] {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const resources = ["digitalhumanproviders", "digitalhumanproviders/status"];
  return Object.entries(ownRoles).map(([name, verb]) => {
    const rules = [{ apiGroups: ["dhp.example.com"], resources, verbs: [verb] }];
    return { apiVersion, kind: "ClusterRole", metadata: { name }, rules };
  });
}

function bindings(): Manifest[] {
  const apiGroup = "rbac.authorization.k8s.io";
  return Object.entries(rolesOf).flatMap(([person, roles]) =>
    roles.map((role) => ({
      apiVersion: `${apiGroup}/v1`,
      kind: "RoleBinding",
      metadata: { name: `${person}-${role}`, namespace: "default" },
      roleRef: { apiGroup, kind: "ClusterRole", name: role },
      subjects: [{ apiGroup, kind: "User", name: person }],
    })),
  );
}

/**
 * A new policy acts about a second after it was made, and a new role soon. Each probe is a dry run
 * that succeeds until its guard acts.
 */
async function waitForGuards(guarded: GuardedCluster): Promise<void> {
  await createRecorded(guarded, "probe", { placements: [placement()] });
  const { cluster, patchAsController } = guarded;
  const probe = (patch: Manifest, who: readonly string[]) =>
    mergePatch(cluster, "dhp/probe", patch, [...who, "--dry-run=server"]);
  const bare = { metadata: { finalizers: null } };
  await untilRefused(() => probe(bare, []));
  const adopt = { spec: { adopt: { providerID: "room-1" } } };
  await untilRefused(() => probe(adopt, people.editor));
  await eventually(async () => expectDone(await probe(adopt, people.adopter)), waitMsMax);
  const suspend = { spec: { suspend: true } };
  await untilRefused(() => patchAsController("dhp/probe", suspend, "?dryRun=All"));
}

async function untilRefused(attempt: () => Promise<CommandResult>): Promise<void> {
  await eventually(async () => {
    const { code, stderr } = await attempt();
    assert.ok(code !== 0 && stderr.includes("ValidatingAdmissionPolicy"), stderr);
  }, waitMsMax);
}

/** What the controller has written about an object. */
export interface WrittenRecord {
  readonly placements?: readonly Manifest[];
  /** uid to write into the first-placement annotation; "own" means the object's. */
  readonly firstPlacementUid?: string;
}

/** Makes an object as an administrator, then lets the controller record what is given. */
export async function createRecorded(
  guarded: GuardedCluster,
  name: string,
  record: WrittenRecord,
): Promise<void> {
  expectDone(await send(guarded.cluster, ["create"], provider(name)));
  await recordAt(guarded, name, record);
}

/** The controller's two writes: finalizer and annotation in one patch, then status. */
export async function recordAt(
  { cluster, patchAsController }: GuardedCluster,
  name: string,
  record: WrittenRecord,
): Promise<void> {
  const { metadata } = await read(cluster, [`dhp/${name}`]);
  const uid = record.firstPlacementUid === "own" ? metadata.uid : record.firstPlacementUid;
  const annotations = uid === undefined ? {} : { [firstPlacementAnnotation]: firstPlacement(uid) };
  const patch = { metadata: { finalizers: [finalizer], annotations } };
  expectDone(await patchAsController(`dhp/${name}`, patch));
  if (record.placements === undefined) return;
  const status = { status: { placements: record.placements } };
  expectDone(await patchAsController(`dhp/${name}`, status, "/status"));
}

/** The annotation's text. */
export function firstPlacement(uid: string): string {
  return JSON.stringify({ uid, placement: placement() });
}
