import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  expectDone,
  expectRefused,
  provider,
  send,
  startClusterWith,
  type Manifest,
} from "../crd/cluster-fixture.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import { eventually } from "../dev-cluster/eventually.ts";
import { allowedOf, discoverResources } from "./own-access.ts";

const controller = "system:serviceaccount:dhp-system:dhp-controller";
const group = "dhp.example.com";

/** One question: may `user` do `verb` on `resource`? */
interface Question {
  readonly verb: string;
  /** "resource.group/subresource", the group absent for the core group. */
  readonly resource: string;
  readonly name?: string;
  readonly namespace?: string;
}

const providers = `digitalhumanproviders.${group}`;
const classes = `digitalhumanproviderclasses.${group}`;
const leases = "leases.coordination.k8s.io";
const events = "events.events.k8s.io";
const inSystem = { namespace: "dhp-system" };
const elsewhere = { namespace: "default" };

const needed: readonly Question[] = [
  ...verbs(["get", "list", "watch", "patch"], { resource: providers }),
  ...verbs(["get", "list", "watch", "patch"], { resource: classes }),
  { verb: "patch", resource: `${providers}/status` },
  { verb: "patch", resource: `${classes}/status` },
  ...verbs(["create", "patch"], { resource: events, ...elsewhere }),
  { verb: "get", resource: "namespaces", name: "kube-system" },
  { verb: "create", resource: leases, ...inSystem },
  ...verbs(["get", "patch"], { resource: leases, name: "dhp-controller", ...inSystem }),
];

const everyVerb = ["get", "list", "watch", "create", "update", "patch", "delete"];
const withheld: readonly Question[] = [
  ...verbs(everyVerb, { resource: "secrets", ...inSystem }),
  ...verbs(everyVerb, { resource: "configmaps", ...inSystem }),
  ...verbs(everyVerb, { resource: "pods", ...elsewhere }),
  ...verbs(everyVerb, { resource: "serviceaccounts", ...inSystem }),
  { verb: "create", resource: "serviceaccounts/token", ...inSystem },
  ...verbs(everyVerb, { resource: "nodes" }),
  ...verbs(everyVerb, { resource: "deployments.apps", ...inSystem }),
  ...verbs(everyVerb, { resource: "clusterroles.rbac.authorization.k8s.io" }),
  ...verbs(everyVerb, { resource: "customresourcedefinitions.apiextensions.k8s.io" }),
  ...verbs(everyVerb, {
    resource: "validatingadmissionpolicies.admissionregistration.k8s.io",
  }),
  ...verbs(["create", "update", "delete", "deletecollection"], { resource: providers }),
  ...verbs(["adopt", "abandon", "*"], { resource: providers }),
  ...verbs(["get", "update"], { resource: `${providers}/status` }),
  ...verbs(["create", "update", "delete", "*"], { resource: classes }),
  ...verbs(["get", "list", "watch", "delete"], { resource: events, ...elsewhere }),
  ...verbs(["list", "watch", "patch", "delete"], { resource: "namespaces" }),
  { verb: "get", resource: "namespaces", name: "default" },
  ...verbs(["list", "watch", "delete"], { resource: leases, ...inSystem }),
  { verb: "update", resource: leases, name: "dhp-controller", ...inSystem },
  { verb: "get", resource: leases, name: "another", ...inSystem },
  { verb: "create", resource: leases, ...elsewhere },
  { verb: "impersonate", resource: "users" },
  { verb: "*", resource: "*.*" },
];

/** Without those that are limited to one name. */
const ownRights = [
  "create events events.k8s.io",
  "create leases coordination.k8s.io",
  // Everyone's: what may I do, and who am I?
  "create selfsubjectaccessreviews authorization.k8s.io",
  "create selfsubjectreviews authentication.k8s.io",
  "create selfsubjectrulesreviews authorization.k8s.io",
  ...["get", "list", "patch", "watch"].flatMap((verb) => [
    `${verb} digitalhumanproviderclasses ${group}`,
    `${verb} digitalhumanproviders ${group}`,
  ]),
  "patch events events.k8s.io",
  `patch digitalhumanproviderclasses/status ${group}`,
  `patch digitalhumanproviders/status ${group}`,
].sort();

function verbs(all: readonly string[], rest: Omit<Question, "verb">): Question[] {
  return all.map((verb) => ({ verb, ...rest }));
}

describe("the rights in deploy/controller", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startClusterWith(["crd", "controller"]);
    const mayPatch = { verb: "patch", resource: `${providers}/status` };
    await eventually(async () => assert.deepEqual(await ask(controller, [mayPatch]), [true]));
  });
  after(() => cluster.stop());

  /** Answers of the API server's authorizer, in the order of the questions. */
  async function ask(user: string, questions: readonly Question[]): Promise<boolean[]> {
    const items = questions.map((question) => accessReview(user, question));
    const list = { apiVersion: "v1", kind: "List", items };
    const answers = await send(
      cluster,
      ["create", "-o", "jsonpath={.status.allowed}{'\\n'}"],
      list,
    );
    return expectDone(answers)
      .trim()
      .split("\n")
      .map((answer) => answer === "true");
  }

  async function expectAnswers(user: string, questions: readonly Question[], allowed: boolean) {
    const answers = await ask(user, questions);
    assert.equal(answers.length, questions.length);
    const wrong = questions.filter((_question, index) => answers[index] !== allowed);
    assert.deepEqual(wrong, []);
  }

  it("give the controller each verb it needs", async () => {
    await expectAnswers(controller, needed, true);
  });

  it("give the controller nothing that it does not need", async () => {
    await expectAnswers(controller, withheld, false);
  });

  it("are held without a wildcard and without Secrets", async () => {
    const raw = await cluster.kubectl([
      "get",
      "clusterroles,roles",
      "--all-namespaces",
      "--selector=app.kubernetes.io/part-of=dhp",
      "-o",
      "jsonpath={range .items[*]}{.metadata.name}{' '}{.rules}{'\\n'}{end}",
    ]);
    const roles = expectDone(raw).trim().split("\n");
    assert.equal(roles.length, 5);
    for (const role of roles) assert.doesNotMatch(role, /\*|secrets/);
  });

  it("work with the controller's own token", async () => {
    const account = { namespace: "dhp-system", name: "dhp-controller" };
    const kubeconfig = await cluster.serviceAccountKubeconfig(account);
    expectDone(await send(cluster, ["create"], provider("seen")));
    expectDone(await cluster.kubectl(["get", "dhp,dhpclass", "-A"], { kubeconfig }));
    expectDone(await cluster.kubectl(["get", "namespace/kube-system"], { kubeconfig }));
    for (const what of ["secrets", "pods", "configmaps"]) {
      expectRefused(await cluster.kubectl(["get", what], { kubeconfig }), /Forbidden/);
    }
    const doomed = ["delete", "dhp/seen", "--namespace=default"];
    expectRefused(await cluster.kubectl(doomed, { kubeconfig }), /Forbidden/);
  });

  it("are all there is, asked with its own token about every verb on every resource", async () => {
    const account = { namespace: "dhp-system", name: "dhp-controller" };
    const resources = await discoverResources(cluster);
    for (const name of ["secrets", "pods", "pods/exec", "nodes", "configmaps"]) {
      assert.ok(resources.some((resource) => resource.name === name));
    }
    const verbs = [...everyVerb, "deletecollection"];
    const questions = ["dhp-system", "default"].flatMap((namespace) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ ...resource, verb, namespace }))),
    );
    const allowed = await allowedOf(cluster, account, questions);
    const shown = allowed.map(({ verb, name, group }) => `${verb} ${name} ${group}`);
    assert.deepEqual([...new Set(shown)].sort(), ownRights);
  });

  it("let everyone who is logged in read the leader's Lease and no other", async () => {
    const lease = { verb: "get", resource: leases, name: "dhp-controller", ...inSystem };
    await expectAnswers("anyone", [lease], true);
    const more = [
      { ...lease, name: "another" },
      { ...lease, verb: "update" },
      { ...lease, verb: "list" },
      { ...lease, namespace: "default" },
    ];
    await expectAnswers("anyone", more, false);
    assert.deepEqual(await ask("system:anonymous", [lease]), [false]);
  });

  it("let viewers read and editors write, and neither adopt nor abandon", async () => {
    for (const role of ["dhp-view", "dhp-edit"]) {
      const binding = ["create", "clusterrolebinding", role, `--user=${role}`];
      expectDone(await cluster.kubectl([...binding, `--clusterrole=${role}`]));
    }
    const create = { verb: "create", resource: providers };
    await eventually(async () => assert.deepEqual(await ask("dhp-edit", [create]), [true]));
    const reads = verbs(["get", "list", "watch"], { resource: providers });
    const writes = verbs(["create", "update", "patch", "delete"], { resource: providers });
    const special = verbs(["adopt", "abandon"], { resource: providers });
    const status = verbs(["update", "patch"], { resource: `${providers}/status` });
    const classWrites = verbs(["create", "update", "patch", "delete"], { resource: classes });
    await expectAnswers("dhp-view", [...reads, { verb: "list", resource: classes }], true);
    await expectAnswers("dhp-view", [...writes, ...special, ...status, ...classWrites], false);
    await expectAnswers("dhp-edit", writes, true);
    await expectAnswers("dhp-edit", [...special, ...status, ...classWrites], false);
  });

  it("are added to the cluster's own roles view, edit and admin", async () => {
    const into = (role: string) =>
      cluster.kubectl([
        "get",
        "clusterroles",
        `--selector=rbac.authorization.k8s.io/aggregate-to-${role}=true,app.kubernetes.io/part-of=dhp`,
        "-o",
        "name",
      ]);
    const view = "clusterrole.rbac.authorization.k8s.io/dhp-view\n";
    const edit = "clusterrole.rbac.authorization.k8s.io/dhp-edit\n";
    assert.equal(expectDone(await into("view")), view);
    assert.equal(expectDone(await into("edit")), edit + view);
    assert.equal(expectDone(await into("admin")), edit + view);
  });
});

function accessReview(user: string, { verb, resource, name, namespace }: Question): Manifest {
  const [kind = "", subresource] = resource.split("/");
  const [plural, ...groups] = kind.split(".");
  return {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user,
      groups: groupsOf(user),
      resourceAttributes: {
        verb,
        group: groups.join("."),
        resource: plural,
        subresource,
        name,
        namespace,
      },
    },
  };
}

function groupsOf(user: string): string[] {
  if (user === "system:anonymous") return ["system:unauthenticated"];
  if (user !== controller) return ["system:authenticated"];
  return ["system:serviceaccounts", "system:serviceaccounts:dhp-system", "system:authenticated"];
}
