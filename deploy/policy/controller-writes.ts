import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import type { Manifest } from "../crd/cluster-fixture.ts";
import { createBoundedText } from "../dev-cluster/bounded-text.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { CommandResult } from "../dev-cluster/command.ts";

const requestTimeoutMs = 10_000;
const answerLengthMax = 1024 * 1024;
const folders = {
  dhp: "namespaces/default/digitalhumanproviders",
  dhpclass: "digitalhumanproviderclasses",
} as const;

/** One object, as in "dhp/name"; providers are those of namespace default. */
export type ObjectName = `${keyof typeof folders}/${string}`;

/** Sends one merge patch; answers like a command: code 0 or 1, and what the server said. */
export type ControllerPatch = (
  what: ObjectName,
  patch: Manifest,
  query?: "" | "/status" | "?dryRun=All",
) => Promise<CommandResult>;

/**
 * Writes as the controller does: its ServiceAccount's token and bare PATCH requests. kubectl patch
 * reads the object's /status first, a right that the controller neither needs nor has.
 */
export async function connectController(cluster: Cluster): Promise<ControllerPatch> {
  const account = { namespace: "dhp-system", name: "dhp-controller" };
  const kubeconfig = await readFile(await cluster.serviceAccountKubeconfig(account), "utf8");
  const token: unknown = JSON.parse(kubeconfig).users[0].user.token;
  assert.ok(typeof token === "string");
  const agent = new Agent({ ca: await readFile(cluster.caFile) });
  return (what, patch, query = "") => {
    const [kind, name] = what.split("/");
    const folder = folders[kind === "dhp" ? "dhp" : "dhpclass"];
    const url = `${cluster.url}/apis/dhp.example.com/v1alpha1/${folder}/${name}${query}`;
    return sendPatch({ url, token, agent, body: JSON.stringify(patch) });
  };
}

interface PatchRequest {
  readonly url: string;
  readonly token: string;
  readonly agent: Agent;
  readonly body: string;
}

function sendPatch({ url, token, agent, body }: PatchRequest): Promise<CommandResult> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/merge-patch+json",
  };
  const signal = AbortSignal.timeout(requestTimeoutMs);
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "PATCH", headers, agent, signal }, (response) => {
      const answer = createBoundedText(answerLengthMax);
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => answer.append(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const isDone = response.statusCode === 200;
        const text = answer.text();
        resolve(
          isDone ? { code: 0, stdout: text, stderr: "" } : { code: 1, stdout: "", stderr: text },
        );
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
