import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { kubeConfigFile, podNamespace } from "./kube-config.ts";

describe("kubeconfig file", () => {
  let folder: string;
  let path: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kube-config-"));
    path = join(folder, "kubeconfig");
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  async function write(user: object, cluster: object = {}): Promise<void> {
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        { name: "one", cluster: { server: "https://one.example:6443/", ...cluster } },
        { name: "two", cluster: { server: "https://two.example/k8s/clusters/c-1" } },
      ],
      users: [{ name: "user", user }],
      contexts: [
        { name: "first", context: { cluster: "one", user: "user" } },
        { name: "second", context: { cluster: "two", user: "user" } },
      ],
      "current-context": "first",
    };
    await writeFile(path, JSON.stringify(config));
  }

  test("server, authority, certificate and key are read", async () => {
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    await writeFile(join(folder, "client.key"), "KEY");
    await write(
      { "client-certificate-data": base64("CERT"), "client-key": "client.key" },
      { "certificate-authority-data": base64("CA"), "tls-server-name": "inside.example" },
    );
    assert.deepEqual(await kubeConfigFile(path).read(false), {
      serverUrl: "https://one.example:6443",
      tls: {
        ca: "CA",
        cert: "CERT",
        key: "KEY",
        servername: "inside.example",
        isServerVerified: true,
      },
      headers: {},
    });
  });

  test("another context than the current one can be named", async () => {
    await write({ token: "t" });
    const access = await kubeConfigFile(path, "second").read(false);
    assert.equal(access.serverUrl, "https://two.example/k8s/clusters/c-1");
  });

  test("a context that does not exist is refused", async () => {
    await write({ token: "t" });
    await assert.rejects(async () => kubeConfigFile(path, "third").read(false), /third/);
  });

  test("a token is sent as a bearer", async () => {
    await write({ token: "secret" });
    const access = await kubeConfigFile(path).read(false);
    assert.deepEqual(access.headers, { authorization: "Bearer secret" });
  });

  test("a user name and password are sent as basic", async () => {
    await write({ username: "u", password: "p" });
    const access = await kubeConfigFile(path).read(false);
    assert.deepEqual(access.headers, { authorization: "Basic dTpw" });
  });

  test("a token file wins over a token, is trimmed, and read again when forced", async () => {
    await writeFile(join(folder, "token"), "one\n");
    await write({ token: "written out", tokenFile: "token" });
    const source = kubeConfigFile(path);
    assert.deepEqual((await source.read(false)).headers, { authorization: "Bearer one" });
    await writeFile(join(folder, "token"), "two\n");
    assert.deepEqual((await source.read(true)).headers, { authorization: "Bearer two" });
  });

  test("a changed kubeconfig is seen without force", async () => {
    const source = kubeConfigFile(path);
    await write({ token: "one" });
    await source.read(false);
    await write({ token: "two" });
    assert.deepEqual((await source.read(false)).headers, { authorization: "Bearer two" });
  });

  test("a server without TLS and a proxy are refused in words", async () => {
    await write({ token: "t" }, { server: "http://one.example" });
    await assert.rejects(async () => kubeConfigFile(path).read(false), /is not https/);
    await write({ token: "t" }, { "proxy-url": "http://proxy.example" });
    await assert.rejects(async () => kubeConfigFile(path).read(false), /proxy-url/);
  });
  test("the pod's namespace is what its file says, and none outside a pod", async () => {
    await writeFile(join(folder, "namespace"), "media\n");
    assert.equal(podNamespace(join(folder, "namespace")), "media");
    assert.equal(podNamespace(join(folder, "missing")), undefined);
  });
});
