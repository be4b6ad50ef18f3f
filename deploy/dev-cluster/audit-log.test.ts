import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readAuditLog } from "./audit-log.ts";

test("the stages of a request become one entry, and a half-written line none", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dhp-audit-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const received = {
    auditID: "a-1",
    stage: "RequestReceived",
    requestURI: "/apis/dhp.example.com/v1alpha1/namespaces/shows/digitalhumanproviders/tts/status",
    verb: "patch",
    user: { username: "system:serviceaccount:dhp:controller", groups: ["system:authenticated"] },
    userAgent: "dhp-controller",
    objectRef: {
      resource: "digitalhumanproviders",
      namespace: "shows",
      name: "tts",
      apiGroup: "dhp.example.com",
      apiVersion: "v1alpha1",
      subresource: "status",
    },
    requestReceivedTimestamp: "2030-01-02T03:04:05.678901Z",
  };
  const complete = { ...received, stage: "ResponseComplete", responseStatus: { code: 409 } };
  const other = { ...received, auditID: "a-2", verb: "get", objectRef: undefined };
  const lines = [received, other, complete].map((event) => JSON.stringify(event));
  const file = join(folder, "audit.log");
  await writeFile(file, `${lines.join("\n")}\n{"auditID":"a-3","sta`);

  const [patch, get, ...rest] = await readAuditLog(file);
  assert.deepEqual(rest, []);
  assert.deepEqual(patch, {
    id: "a-1",
    stage: "ResponseComplete",
    receivedAt: new Date("2030-01-02T03:04:05.678Z"),
    verb: "patch",
    user: "system:serviceaccount:dhp:controller",
    userAgent: "dhp-controller",
    uri: received.requestURI,
    group: "dhp.example.com",
    version: "v1alpha1",
    resource: "digitalhumanproviders",
    subresource: "status",
    namespace: "shows",
    name: "tts",
    code: 409,
  });
  assert.equal(get?.resource, "");
  assert.equal(get?.code, undefined);
});
