/**
 * What stands beside ProviderAPI on the wire: health and reflection. Described here anew, so that
 * nothing of the server under test is used to look at it.
 */
import { create, createFileRegistry, toJson } from "@bufbuild/protobuf";
import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
} from "@bufbuild/protobuf";
import type { JsonObject } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { unmet } from "./case.ts";
import type { WireClient } from "./wire-client.ts";

const deadlineMs = 5_000;

type Init = MessageInitShape<typeof FileDescriptorProtoSchema>;
type FieldInit = readonly [name: string, number: number, type: string];

/** Scalars by name; anything else is a message of the same file. */
function field(pkg: string, [name, number, type]: FieldInit, isRepeated = false): object {
  const scalars: Readonly<Record<string, FieldDescriptorProto_Type>> = {
    string: FieldDescriptorProto_Type.STRING,
    bytes: FieldDescriptorProto_Type.BYTES,
    int32: FieldDescriptorProto_Type.INT32,
  };
  const scalar = scalars[type];
  const label = isRepeated
    ? FieldDescriptorProto_Label.REPEATED
    : FieldDescriptorProto_Label.OPTIONAL;
  const form =
    scalar === undefined
      ? { type: FieldDescriptorProto_Type.MESSAGE, typeName: `.${pkg}.${type}` }
      : { type: scalar };
  const jsonName = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return { name, jsonName, number, label, ...form };
}

function fileOf(pkg: string, service: Init["service"], messages: readonly object[]): Init {
  return {
    name: `${pkg}.proto`,
    package: pkg,
    syntax: "proto3",
    messageType: [...messages],
    ...(service === undefined ? {} : { service }),
  };
}

function methodOf(file: Init, service: string, name: string): DescMethod {
  const registry = createFileRegistry(create(FileDescriptorProtoSchema, file), () => undefined);
  const found = registry.getService(service)?.methods.find((method) => method.name === name);
  if (found === undefined) throw new Error(`${service} has no ${name}`);
  return found;
}

/** Status as its number: 1 is SERVING. An int32 reads an enum from the wire all the same. */
function healthMethod(name: "Check" | "Watch"): DescMethod {
  const pkg = "grpc.health.v1";
  const [inputType, outputType] = ["HealthCheckRequest", "HealthCheckResponse"].map(
    (type) => `.${pkg}.${type}`,
  );
  const io = { inputType: inputType ?? "", outputType: outputType ?? "" };
  const methods = [
    { name: "Check", ...io },
    { name: "Watch", serverStreaming: true, ...io },
  ];
  const file = fileOf(
    pkg,
    [{ name: "Health", method: methods }],
    [
      { name: "HealthCheckRequest", field: [field(pkg, ["service", 1, "string"])] },
      { name: "HealthCheckResponse", field: [field(pkg, ["status", 1, "int32"])] },
    ],
  );
  return methodOf(file, `${pkg}.Health`, name);
}

function reflectionMethod(version: "v1" | "v1alpha"): DescMethod {
  const pkg = `grpc.reflection.${version}`;
  const info = {
    name: "ServerReflectionInfo",
    clientStreaming: true,
    serverStreaming: true,
    inputType: `.${pkg}.ServerReflectionRequest`,
    outputType: `.${pkg}.ServerReflectionResponse`,
  };
  const question = [
    field(pkg, ["file_containing_symbol", 4, "string"]),
    field(pkg, ["list_services", 7, "string"]),
  ].map((one) => ({ ...one, oneofIndex: 0 }));
  const file = fileOf(
    pkg,
    [{ name: "ServerReflection", method: [info] }],
    [
      {
        name: "ServerReflectionRequest",
        field: question,
        oneofDecl: [{ name: "message_request" }],
      },
      {
        name: "ServerReflectionResponse",
        field: [
          field(pkg, ["file_descriptor_response", 4, "FileDescriptorResponse"]),
          field(pkg, ["list_services_response", 6, "ListServiceResponse"]),
        ],
      },
      {
        name: "FileDescriptorResponse",
        field: [field(pkg, ["file_descriptor_proto", 1, "bytes"], true)],
      },
      { name: "ListServiceResponse", field: [field(pkg, ["service", 1, "ServiceResponse"], true)] },
      { name: "ServiceResponse", field: [field(pkg, ["name", 1, "string"])] },
    ],
  );
  return methodOf(file, `${pkg}.ServerReflection`, info.name);
}

/** What health says: "1" is SERVING; a failure in words. */
export async function checkHealth(client: WireClient, service: string): Promise<string> {
  const method = unaryOf(healthMethod("Check"));
  const message = create(method.input, { service });
  try {
    const call = AbortSignal.timeout(deadlineMs * 2);
    const answer = await client.transport.unary(method, call, deadlineMs, undefined, message);
    return statusOf(method.output, answer.message);
  } catch (error) {
    return codeName(error);
  }
}

/** The first thing that a health watch says. */
export async function firstOfWatch(client: WireClient, service: string): Promise<string> {
  const method = healthMethod("Watch");
  return statusOf(method.output, await firstAnswer(client, method, { service }));
}

export interface ReflectionAnswer {
  readonly services: readonly string[];
  /** Serialized FileDescriptorProtos. */
  readonly files: readonly Uint8Array[];
}

/** One question to the reflection service. Throws Unmet when it does not answer. */
export async function reflectOn(
  client: WireClient,
  version: "v1" | "v1alpha",
  question: { readonly list_services: string } | { readonly file_containing_symbol: string },
): Promise<ReflectionAnswer> {
  const method = reflectionMethod(version);
  const [[name, value] = ["", ""]] = Object.entries(question);
  const oneof = { case: name === "list_services" ? "listServices" : "fileContainingSymbol", value };
  const answer = await firstAnswer(client, method, { messageRequest: oneof });
  const json = objectOf(toJson(method.output, answer));
  const files = listOf(objectOf(json["fileDescriptorResponse"])["fileDescriptorProto"]);
  const services = listOf(objectOf(json["listServicesResponse"])["service"]);
  return {
    services: services.map((service) => textOf(objectOf(service)["name"])),
    files: files.map((file) => Buffer.from(textOf(file), "base64")),
  };
}

/** Code of a call to a method that no contract names; "OK" when it is answered. */
export async function callUnknown(client: WireClient, path: string): Promise<string> {
  const [service = "", name = ""] = path.split("/");
  const at = service.lastIndexOf(".");
  const [pkg, short] = [service.slice(0, at), service.slice(at + 1)];
  const io = { inputType: `.${pkg}.Nothing`, outputType: `.${pkg}.Nothing` };
  const services = [{ name: short, method: [{ name, ...io }] }];
  const method = methodOf(fileOf(pkg, services, [{ name: "Nothing" }]), service, name);
  try {
    await client.transport.unary(
      unaryOf(method),
      AbortSignal.timeout(deadlineMs * 2),
      deadlineMs,
      undefined,
      create(method.input),
    );
    return "OK";
  } catch (error) {
    return codeName(error);
  }
}

async function firstAnswer(
  client: WireClient,
  method: DescMethod,
  init: Readonly<Record<string, unknown>>,
): Promise<ReturnType<typeof create>> {
  const done = new AbortController();
  const signal = AbortSignal.any([done.signal, AbortSignal.timeout(deadlineMs * 2)]);
  const message = create(method.input, init);
  async function* input(): AsyncGenerator<typeof message> {
    yield message;
  }
  try {
    const response = await client.transport.stream(
      streamOf(method),
      signal,
      undefined,
      undefined,
      input(),
    );
    for await (const answer of response.message) return answer;
    return unmet(`an answer of ${method.parent.typeName}`, "the stream ended");
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return unmet(
      `an answer of ${method.parent.typeName}`,
      `${codeName(error)}: ${error.rawMessage}`,
    );
  } finally {
    done.abort();
  }
}

function unaryOf(method: DescMethod): DescMethodUnary {
  if (method.methodKind !== "unary") throw new Error(`${method.name} is a stream`);
  return method as DescMethodUnary;
}

function streamOf(method: DescMethod): DescMethodStreaming {
  if (method.methodKind === "unary") throw new Error(`${method.name} is no stream`);
  return method as DescMethodStreaming;
}

function statusOf(schema: DescMessage, message: ReturnType<typeof create>): string {
  const { status = 0 } = objectOf(toJson(schema, message));
  return status === 1 ? "SERVING" : `status ${JSON.stringify(status)}`;
}

function codeName(error: unknown): string {
  return Code[ConnectError.from(error).code];
}

function objectOf(value: unknown): Readonly<JsonObject> {
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value))
    : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
