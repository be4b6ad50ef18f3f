/** Runs a cluster in the foreground until Ctrl-C: `npm run dev-cluster`. */
import { parseArgs } from "node:util";
import { ensureBinary } from "./binaries.ts";
import { startCluster } from "./cluster.ts";

const { values } = parseArgs({
  options: {
    folder: { type: "string" },
    port: { type: "string" },
    "audit-log": { type: "boolean", default: false },
  },
});

const { promise: stopAsked, resolve: askStop } = Promise.withResolvers<void>();
process.once("SIGINT", () => askStop());
process.once("SIGTERM", () => askStop());
// Signal handlers alone do not keep a process alive.
const keepAlive = setInterval(() => undefined, 60_000);

try {
  const kubectl = await ensureBinary("kubectl");
  const cluster = await startCluster({
    withControllerManager: true,
    auditLog: values["audit-log"],
    ...(values.folder === undefined ? {} : { folder: values.folder }),
    ...(values.port === undefined ? {} : { port: Number(values.port) }),
  });
  try {
    console.log(`Kubernetes API at ${cluster.url}. Ctrl-C ends it. In another terminal:\n`);
    console.log(`  export KUBECONFIG=${cluster.adminKubeconfig}`);
    console.log(`  ${kubectl} get namespaces\n`);
    await stopAsked;
  } finally {
    await cluster.stop();
  }
} catch (cause) {
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = 1;
} finally {
  clearInterval(keepAlive);
}
