import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { MethodDefinition, ServiceDefinition } from "@grpc/proto-loader";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { closeAtEnd, serve } from "./test-bench.ts";

function open(port: number): Client {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  closeAtEnd(() => client.close());
  return client;
}

/** A service of a package's own .proto file: an independent description of what we must speak. */
function serviceFrom(protoFile: string, name: string): ServiceDefinition {
  const path = fileURLToPath(new URL(`../../node_modules/${protoFile}`, import.meta.url));
  const service = loadSync(path, { keepCase: true, enums: String, defaults: true, oneofs: true })[
    name
  ];
  assert.ok(service !== undefined && !("format" in service));
  return service;
}

function methodOf(service: ServiceDefinition, name: string): MethodDefinition<object, object> {
  const method = service[name];
  assert.ok(method !== undefined);
  return method;
}

/** One question to the reflection service over its stream. */
function reflect(
  client: Client,
  version: string,
  question: object,
): Promise<Record<string, unknown>> {
  const service = serviceFrom(
    `@grpc/reflection/build/proto/grpc/reflection/${version}/reflection.proto`,
    `grpc.reflection.${version}.ServerReflection`,
  );
  const { path, requestSerialize, responseDeserialize } = methodOf(service, "ServerReflectionInfo");
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  return new Promise((resolve, reject) => {
    stream.once("data", (answer: Record<string, unknown>) => {
      resolve(answer);
      stream.end();
    });
    stream.on("error", reject);
    stream.write(question);
  });
}

for (const version of ["v1", "v1alpha"]) {
  test(`reflection ${version} lists our service and health, and describes a call with its errors`, async () => {
    const client = open((await serve({})).port);
    const listed = await reflect(client, version, { list_services: "" });
    const names = JSON.stringify(listed["list_services_response"]);
    for (const name of [ProviderAPI.typeName, "grpc.health.v1.Health"])
      assert.ok(names.includes(name));
    for (const symbol of [ProviderAPI.typeName, "google.rpc.ErrorInfo", "grpc.health.v1.Health"]) {
      const described = await reflect(client, version, { file_containing_symbol: symbol });
      const response = described["file_descriptor_response"];
      assert.ok(typeof response === "object" && response !== null, symbol);
      assert.ok(
        "file_descriptor_proto" in response && Array.isArray(response.file_descriptor_proto),
      );
      const files = response.file_descriptor_proto.map((bytes: Uint8Array) =>
        fromBinary(FileDescriptorProtoSchema, bytes),
      );
      // What grpcurl needs: each file says what it imports, and each import is there.
      const present = new Set(files.map((file) => file.name));
      const imported = files.flatMap((file) => file.dependency);
      assert.ok(symbol.startsWith("grpc.health") || imported.length > 0, symbol);
      for (const name of imported) assert.ok(present.has(name), name);
      const registry = createFileRegistry(
        create(FileDescriptorSetSchema, { file: files.reverse() }),
      );
      assert.ok(registry.get(symbol) !== undefined, symbol);
    }
  });
}

const health = serviceFrom(
  "grpc-health-check/proto/health/v1/health.proto",
  "grpc.health.v1.Health",
);

function check(client: Client, service: string): Promise<unknown> {
  const { path, requestSerialize, responseDeserialize } = methodOf(health, "Check");
  return new Promise((resolve, reject) => {
    const answer = (error: Error | null, value?: object): void => {
      if (error === null) resolve(value && "status" in value ? value.status : undefined);
      else reject(error);
    };
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { service },
      new Metadata(),
      { deadline: Date.now() + 5_000 },
      answer,
    );
  });
}

test("health speaks for the process and for ProviderAPI, and follows setServing and drain", async () => {
  const server = await serve({});
  const client = open(server.port);
  for (const service of ["", ProviderAPI.typeName]) {
    assert.equal(await check(client, service), "SERVING");
    server.setServing(false);
    assert.equal(await check(client, service), "NOT_SERVING");
    server.setServing(true);
  }
  await assert.rejects(check(client, "another.Service"), { code: 5 });
  await server.drain(1_000);
  assert.equal(await check(client, ""), "NOT_SERVING");
});
