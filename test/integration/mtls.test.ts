/**
 * Controller and adapter as their manifests start them, with the Secrets that deploy/README.md
 * makes: mutual TLS between processes, strangers kept out, certificates replaced under both.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TcpRelay } from "../../controller/kubernetes/tcp-relay.ts";
import { expectDone, layerFolder, send } from "../../deploy/crd/cluster-fixture.ts";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { readDevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { startLiveKit } from "../../deploy/dev-cluster/livekit.ts";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";
import { repositoryFolder } from "../../deploy/manifest-folders.ts";
import { GetProviderInfoRequestSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ClientTls } from "../../services/contract/connection.ts";
import { createTestAuthority, testTlsFiles } from "../../services/contract/test-certificates.ts";
import { silentLog } from "../../services/process/log.ts";
import { startDeployed } from "../support/deployed.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { mountVolume } from "../support/mounted-volume.ts";
import type { MountedVolume } from "../support/mounted-volume.ts";
import { applyDhp, condition, dhp, readDhp, untilReady } from "../support/providers.ts";
import type { Program } from "../support/program.ts";
import { livekitEndpoint } from "../support/stack.ts";

const service = "dhp-adapter-livekit";
/** The name in the adapter's certificate; the address here is another one. */
const serverName = `${service}.dhp-system.svc`;
/** Certificate files are looked at each 10 s. */
const reloadTimeoutMs = 25_000;

let cluster: Cluster;
let livekit: LiveKit;
let folder: string;
let relay: TcpRelay;
let adapter: Program;
let controller: Program;
const volumes = new Map<string, MountedVolume>();

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "dhp-mtls-"));
  [cluster, livekit] = await Promise.all([startCluster(), startLiveKit()]);
  for (const layer of ["crd", "policy", "controller"] as const) {
    expectDone(await cluster.kubectl(["apply", "-k", layerFolder(layer)]));
  }
  await applyCertificates("first");
  await applyOperatorsPart();
  adapter = await startAdapter();
  relay = await TcpRelay.start(adapter.ports.grpcPort ?? 0);
  await applyClass("livekit", { address: `127.0.0.1:${relay.port}`, mode: "Mutual" });
  controller = await startController();
});
after(async () => {
  await controller?.stop();
  relay?.stop();
  await adapter?.stop();
  await Promise.all([cluster?.stop(), livekit?.stop()]);
  for (const volume of volumes.values()) await volume.remove();
  await rm(folder, { recursive: true, force: true });
});

/** As deploy/README.md says: an authority kept in its own folder, and a Secret for each process. */
async function applyCertificates(authority: string): Promise<void> {
  const script = join(repositoryFolder, "deploy/certificates.sh");
  const made = await runCommand(script, [join(folder, authority), "dhp-controller", service], {
    environment: readDevClusterOptions().environment,
  });
  const input = expectDone(made);
  expectDone(await cluster.kubectl(["apply", "-f", "-"], { input }));
}

/** What the manifests leave to the operator: the fleet's name and the vendor's credential. */
async function applyOperatorsPart(): Promise<void> {
  const inSystem = "--namespace=dhp-system";
  const fleet = ["create", "configmap", "dhp-controller", "--from-literal=fleet=mtls", inSystem];
  expectDone(await cluster.kubectl(fleet));
  const fields = { apiKey: livekit.apiKey, apiSecret: livekit.apiSecret };
  const credential = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "dhp-adapter-livekit-default", namespace: "dhp-system" },
    stringData: fields,
  };
  expectDone(await send(cluster, ["create"], credential));
  const accounts = join(repositoryFolder, "adapters/livekit/deploy/accounts.yaml");
  expectDone(await cluster.kubectl(["apply", "-f", accounts]));
}

async function mounted(what: string): Promise<string> {
  const volume = volumes.get(what) ?? (await mountVolume(cluster, what));
  volumes.set(what, volume);
  return volume.folder;
}

async function startAdapter(): Promise<Program> {
  const credentials = await mounted("secret/dhp-adapter-livekit-default");
  const accounts = await mounted("configmap/dhp-adapter-livekit-accounts");
  const credentialPath = "/etc/dhp/credentials/default";
  // The one absolute path inside a file: it names the other mount.
  const accountsFile = join(accounts, "accounts.yaml");
  const text = await readFile(accountsFile, "utf8");
  await writeFile(accountsFile, text.replace(credentialPath, credentials));
  return startDeployed({
    manifests: "adapters/livekit/deploy",
    mounts: {
      "/etc/dhp/accounts": accounts,
      [credentialPath]: credentials,
      "/etc/dhp/tls": await mounted(`secret/${service}-tls`),
    },
    flags: [`--connect-to=${livekitEndpoint}=${livekit.url}`],
  });
}

async function startController(): Promise<Program> {
  const account = { namespace: "dhp-system", name: "dhp-controller" };
  const fleet = ["get", "configmap", "dhp-controller", "--namespace=dhp-system"];
  const read = await cluster.kubectl([...fleet, "-o", "jsonpath={.data.fleet}"]);
  return startDeployed({
    manifests: "deploy/controller",
    mounts: { "/etc/dhp/tls": await mounted("secret/dhp-controller-tls") },
    environment: { DHP_FLEET: expectDone(read) },
    flags: [`--kubeconfig=${await cluster.serviceAccountKubeconfig(account)}`],
  });
}

async function applyClass(
  name: string,
  { address, mode }: { readonly address: string; readonly mode?: "Mutual" },
): Promise<void> {
  const tls = mode === undefined ? {} : { tls: { mode, serverName } };
  const manifest = {
    apiVersion: "dhp.example.com/v1alpha1",
    kind: "DigitalHumanProviderClass",
    metadata: { name },
    spec: { adapter: { address, ...tls }, endpointHosts: [new URL(livekitEndpoint).host] },
  };
  expectDone(await send(cluster, ["apply"], manifest));
}

/** Whether the adapter answers somebody with these certificates, or none. */
async function isAnswered(tls: ClientTls | undefined): Promise<boolean> {
  const client = connectProvider({
    address: `127.0.0.1:${adapter.ports.grpcPort}`,
    ...(tls === undefined ? {} : { tls }),
    log: silentLog,
  });
  try {
    const request = create(GetProviderInfoRequestSchema, { contractVersion: 1 });
    await client.getProviderInfo(request, { deadlineMs: 5_000 });
    return true;
  } catch {
    // Every refusal is one: what matters is that nothing was answered.
    return false;
  } finally {
    client.close();
  }
}

function filesOf(authority: string, name: string): Required<ClientTls> {
  const at = (file: string) => join(folder, authority, file);
  const [certFile, keyFile, caFile] = [at(`${name}.crt`), at(`${name}.key`), at("ca.crt")];
  return { certFile, keyFile, caFile, serverName };
}

test("an object becomes Ready over mutual TLS", async () => {
  await applyDhp(cluster, dhp("secured", { className: "livekit" }));
  await untilReady(cluster, "secured");
  assert.equal((await listRooms(livekit)).length, 1);
});

test("a stranger's certificate, another adapter's, none, and plaintext get no answer", async () => {
  const stranger = await createTestAuthority("stranger");
  const { pem } = await createTestAuthority("unused");
  const ours = filesOf("first", "dhp-controller");
  const foreign = testTlsFiles(await stranger.issue(["dhp-controller"]), pem);
  try {
    const { certFile, keyFile } = foreign;
    assert.equal(await isAnswered({ ...ours, certFile, keyFile }), false);
    // Signed by the same authority, but for a server.
    assert.equal(await isAnswered(filesOf("first", service)), false);
    assert.equal(await isAnswered({ caFile: ours.caFile, serverName }), false);
    assert.equal(await isAnswered(undefined), false);
    assert.equal(await isAnswered(ours), true);
  } finally {
    foreign.remove();
  }
});

test("grpcurl gets answers with the controller's certificate, as README.md says", async () => {
  const { certFile, keyFile, caFile } = filesOf("first", "dhp-controller");
  const tls = ["-cacert", caFile, "-cert", certFile, "-key", keyFile, "-servername", serverName];
  const address = `127.0.0.1:${adapter.ports.grpcPort}`;
  const listed = await runCommand(await ensureBinary("grpcurl"), [...tls, address, "list"]);
  assert.match(expectDone(listed), /dhp\.provider\.v1\.ProviderAPI/);
});

test("certificates of a new authority are taken up by both without a restart", async () => {
  await applyCertificates("second");
  for (const name of ["dhp-controller", service]) {
    await volumes.get(`secret/${name}-tls`)?.refresh();
  }
  for (const program of [adapter, controller]) {
    await eventually(
      async () => assert.match(program.output(), /certificates reloaded/),
      reloadTimeoutMs,
    );
  }
  const renewed = filesOf("second", "dhp-controller");
  const { certFile, keyFile } = filesOf("first", "dhp-controller");
  assert.equal(await isAnswered(renewed), true);
  assert.equal(await isAnswered({ ...renewed, certFile, keyFile }), false);
  // The controller's standing connection is from before: the next one needs the new certificates.
  relay.cut();
  await applyDhp(cluster, dhp("after-rotation", { className: "livekit" }));
  await untilReady(cluster, "after-rotation");
});

test("a class with plaintext to another host is refused, and the condition says what to do", async () => {
  await applyClass("plaintext", { address: "adapter.example.com:50051" });
  await applyDhp(cluster, dhp("in-the-clear", { className: "plaintext" }));
  const ready = condition(await untilReady(cluster, "in-the-clear", "False"), "Ready");
  assert.equal(ready.reason, "AdapterUnreachable");
  assert.match(ready.message, /adapter\.example\.com:50051.*not loopback.*mode: Mutual/);
  assert.deepEqual((await readDhp(cluster, "in-the-clear")).metadata.finalizers ?? [], []);
});
