/** For tests: what a ServiceAccount may do, asked with its own token about everything there is. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { expectDone } from "../crd/cluster-fixture.ts";
import { createBoundedText } from "../dev-cluster/bounded-text.ts";
import type { Cluster, ServiceAccountOptions } from "../dev-cluster/cluster.ts";

const requestTimeoutMs = 10_000;
const answerLengthMax = 64 * 1024;
const connectionsMax = 8;

/** A kind's resource or subresource, as the API server's discovery names it. */
export interface DiscoveredResource {
  /** "" for the core group. */
  readonly group: string;
  /** "pods", "pods/log". */
  readonly name: string;
}

/** Every resource and subresource that the API server serves, in the versions it prefers. */
export async function discoverResources(cluster: Cluster): Promise<readonly DiscoveredResource[]> {
  const get = async (path: string) =>
    JSON.parse(expectDone(await cluster.kubectl(["get", "--raw", path])));
  const list: { groups: { name: string; preferredVersion: { groupVersion: string } }[] } =
    await get("/apis");
  const served = [
    { group: "", path: "/api/v1" },
    ...list.groups.map(({ name, preferredVersion }) => ({
      group: name,
      path: `/apis/${preferredVersion.groupVersion}`,
    })),
  ];
  const found: DiscoveredResource[] = [];
  for (const { group, path } of served) {
    const { resources }: { resources: { name: string }[] } = await get(path);
    found.push(...resources.map(({ name }) => ({ group, name })));
  }
  return found;
}

export interface OwnAccessQuestion extends DiscoveredResource {
  readonly verb: string;
  readonly namespace: string;
}

/** The questions that the API server answers with yes, each as a SelfSubjectAccessReview. */
export async function allowedOf(
  cluster: Cluster,
  account: ServiceAccountOptions,
  questions: readonly OwnAccessQuestion[],
): Promise<readonly OwnAccessQuestion[]> {
  const kubeconfig = await readFile(await cluster.serviceAccountKubeconfig(account), "utf8");
  const token: unknown = JSON.parse(kubeconfig).users[0].user.token;
  assert.ok(typeof token === "string");
  const ca = await readFile(cluster.caFile);
  const agent = new Agent({ ca, keepAlive: true, maxSockets: connectionsMax });
  const url = `${cluster.url}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`;
  try {
    const answers = await Promise.all(
      questions.map((question) => review(question, { url, token, agent })),
    );
    return questions.filter((_question, index) => answers[index] === true);
  } finally {
    agent.destroy();
  }
}

interface Access {
  readonly url: string;
  readonly token: string;
  readonly agent: Agent;
}

function review(
  { group, name, verb, namespace }: OwnAccessQuestion,
  { url, token, agent }: Access,
): Promise<boolean> {
  const [resource, subresource] = name.split("/");
  const resourceAttributes = { group, resource, subresource, verb, namespace };
  const body = JSON.stringify({
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers, agent }, (response) => {
      const answer = createBoundedText(answerLengthMax);
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => answer.append(chunk));
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 201) reject(new Error(`not reviewed: ${answer.text()}`));
        else resolve(JSON.parse(answer.text()).status.allowed === true);
      });
    });
    sent.setTimeout(requestTimeoutMs, () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject);
    sent.end(body);
  });
}
