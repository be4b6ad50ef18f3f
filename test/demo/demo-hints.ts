/** What to try while the demo runs: each line can be copied as it is. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { livekitEndpoint } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Puts kubectl and grpcurl into the demo's folder, with what each call of them needs. */
async function writeCommands(stack: Stack): Promise<{ kubectl: string; grpcurl: string }> {
  const kubectl = join(stack.folder, "kubectl");
  const grpcurl = join(stack.folder, "grpcurl");
  const { adminKubeconfig } = stack.cluster;
  const mode = 0o755;
  await writeFile(
    kubectl,
    `#!/bin/sh\nexec '${await ensureBinary("kubectl")}' --kubeconfig '${adminKubeconfig}' "$@"\n`,
    { mode },
  );
  await writeFile(
    grpcurl,
    `#!/bin/sh\nexec '${await ensureBinary("grpcurl")}' -plaintext -max-time 10 "$@"\n`,
    { mode },
  );
  return { kubectl, grpcurl };
}

export async function hints(stack: Stack): Promise<string> {
  const { kubectl, grpcurl } = await writeCommands(stack);
  const adapter = `127.0.0.1:${stack.adapter.ports.grpcPort}`;
  const describe = JSON.stringify({
    instanceKey: "local/default/aliyun-tts",
    owner: { cluster: "anyone", uid: "anyone" },
    target: { endpoint: livekitEndpoint, region: "cn-hangzhou" },
  });
  return `
Everything is Ready. Copy a line into another terminal:

  look             ${kubectl} get dhp -o wide
                   ${kubectl} describe dhp aliyun-tts
                   ${kubectl} explain dhp.spec
  touch            ${kubectl} annotate dhp aliyun-tts --overwrite dhp.example.com/reconcile-requested-at=$(date +%s)
  edit             ${kubectl} patch dhp aliyun-tts --type=merge -p '{"spec":{"displayName":"renamed"}}'
  delete           ${kubectl} delete dhp evening-gala
  ask the adapter  ${grpcurl} ${adapter} list
                   ${grpcurl} ${adapter} dhp.provider.v1.ProviderAPI/GetProviderInfo
                   ${grpcurl} -d '${describe}' ${adapter} dhp.provider.v1.ProviderAPI/Describe
                   ${grpcurl} ${adapter} grpc.health.v1.Health/Check
  metrics          curl -s http://127.0.0.1:${stack.controller.ports.adminPort}/metrics | grep controller_runtime_reconcile
                   curl -s http://127.0.0.1:${stack.adapter.ports.adminPort}/metrics | grep dhp_vendor
  readiness        curl -s http://127.0.0.1:${stack.controller.ports.adminPort}/readyz?verbose

Break the vendor (LiveKit stops answering), force a look, watch, and mend it again:

                   kill -STOP ${stack.livekit.pid}
                   ${kubectl} annotate dhp --all --overwrite dhp.example.com/reconcile-requested-at=$(date +%s)
                   ${kubectl} get dhp -w
                   kill -CONT ${stack.livekit.pid}

Ctrl-C here removes everything.`;
}
