/** What to try while the demo runs: each line can be copied as it is. */
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { livekitEndpoint } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

export async function hints(stack: Stack): Promise<string> {
  const kubectl = `${await ensureBinary("kubectl")} --kubeconfig ${stack.cluster.adminKubeconfig}`;
  const grpcurl = `${await ensureBinary("grpcurl")} -plaintext`;
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
                   ${grpcurl} -max-time 5 ${adapter} dhp.provider.v1.ProviderAPI/GetProviderInfo
                   ${grpcurl} -max-time 5 -d '${describe}' ${adapter} dhp.provider.v1.ProviderAPI/Describe
                   ${grpcurl} -max-time 5 ${adapter} grpc.health.v1.Health/Check
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
