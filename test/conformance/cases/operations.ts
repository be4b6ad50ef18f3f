/** What people and clusters need beside the RPCs: health, reflection, plain words to unknown calls. */
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "../core/bench.ts";
import { callUnknown, checkHealth, firstOfWatch, reflectOn } from "../core/beside-services.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { describeReply } from "../core/wire-client.ts";
import type { WireClient } from "../core/wire-client.ts";

/** Far less than any vendor time-out, and enough for a machine that is busy. */
const quickMs = 2_000;

/** What GetProviderInfo comes to over another connection. */
async function infoOver(client: WireClient): Promise<string> {
  try {
    const call = { deadlineMs: 5_000 };
    return describeReply(await client.call(ProviderAPI.method.getProviderInfo, {}, call));
  } finally {
    client.close();
  }
}

/** Names of all messages of a server's answer. */
async function reflectedMessages(bench: Bench, version: "v1" | "v1alpha"): Promise<Set<string>> {
  const question = { file_containing_symbol: ProviderAPI.typeName };
  const { files } = await reflectOn(bench.client, version, question);
  return new Set(
    files
      .map((file) => fromBinary(FileDescriptorProtoSchema, file))
      .flatMap((file) => file.messageType.map(({ name }) => `${file.package}.${name}`)),
  );
}

function reflection(version: "v1" | "v1alpha"): ConformanceCase {
  return {
    name: `operations/reflection-${version}`,
    promise: `reflection ${version} lists the service, and describes it with its messages`,
    checks: ["rpc:operations"],
    needs: [],
    fix: `serve grpc.reflection.${version} from the descriptors of the contract's files`,
    run: async (bench) => {
      const { services } = await reflectOn(bench.client, version, { list_services: "" });
      for (const name of [ProviderAPI.typeName, "grpc.health.v1.Health"]) {
        expect(services.includes(name), `${name} in the list`, () => services.join(", "));
      }
      const messages = await reflectedMessages(bench, version);
      for (const { input, output } of ProviderAPI.methods) {
        for (const { typeName } of [input, output]) {
          expect(messages.has(typeName), `a description of ${typeName}`, () => "there is none");
        }
      }
    },
  };
}

export const operationCases: readonly ConformanceCase[] = [
  {
    name: "operations/health-says-serving",
    promise: "grpc.health.v1 says SERVING for the process and for ProviderAPI, asked or watched",
    checks: ["rpc:operations"],
    needs: [],
    fix: 'serve grpc.health.v1 for "" and for dhp.provider.v1.ProviderAPI',
    run: async (bench) => {
      for (const service of ["", ProviderAPI.typeName]) {
        const said = await checkHealth(bench.client, service);
        expect(said === "SERVING", `SERVING for "${service}"`, () => said);
        const watched = await firstOfWatch(bench.client, service);
        expect(watched === "SERVING", `SERVING first in a watch of "${service}"`, () => watched);
      }
      const unknown = await checkHealth(bench.client, "conformance.Nobody");
      expect(unknown === "NotFound", "NOT_FOUND for an unknown service", () => unknown);
    },
  },
  reflection("v1"),
  reflection("v1alpha"),
  {
    name: "operations/unknown-calls-are-unimplemented",
    promise: "a method or service that does not exist is UNIMPLEMENTED",
    checks: ["error:version", "rule:versions"],
    needs: [],
    fix: "leave unknown methods to your gRPC library; do not catch all paths",
    run: async (bench) => {
      for (const path of [`${ProviderAPI.typeName}/Reboot`, "conformance.v9.Nobody/Call"]) {
        const code = await callUnknown(bench.client, path);
        expect(code === "Unimplemented", `UNIMPLEMENTED for ${path}`, () => code);
      }
    },
  },
  {
    name: "operations/info-while-the-vendor-is-away",
    promise: "GetProviderInfo and health answer at once while a vendor cannot be reached",
    checks: ["rpc:info", "rpc:operations", "error:vendor-failure", "error:absent"],
    needs: [{ kind: "parameter", name: "unreachable" }],
    fix: "answer GetProviderInfo from constants; an unreachable vendor is UNAVAILABLE, never NOT_FOUND",
    run: async (bench) => {
      const { unreachable: target } = bench.parameters;
      if (target === undefined) return;
      const subject = bench.subject("unreachable").as({ target });
      const waiting = subject.describe({}, { deadlineMs: 8_000 });
      const startMs = performance.now();
      const said = await infoOver(bench.connect());
      const tookMs = performance.now() - startMs;
      const isQuick = said === "it was answered with OK" && tookMs < quickMs;
      expect(isQuick, `an answer within ${quickMs} ms`, () => `${said} after ${tookMs} ms`);
      const health = await checkHealth(bench.client, "");
      expect(health === "SERVING", "health SERVING", () => health);
      const reasons = ["VENDOR_UNREACHABLE", "VENDOR_TIMEOUT", "CIRCUIT_OPEN"];
      refused(await waiting, { reasons });
    },
  },
];
