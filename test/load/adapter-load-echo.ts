/**
 * What ProviderAPI costs when nothing is done: a bare grpc-js server that decodes each request and
 * encodes one answer, the same that the adapter gave. Its parent sends the answers and is told the port.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { MethodDefinition, UntypedHandleCall } from "@grpc/grpc-js";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EchoAnswers, Listening } from "./adapter-load-tasks.ts";

function serve(answers: EchoAnswers): void {
  const server = new Server();
  const service: Record<string, MethodDefinition<Message, Message>> = {};
  const handlers: Record<string, UntypedHandleCall> = {};
  for (const method of ProviderAPI.methods) {
    const bytes = answers[method.name];
    if (bytes === undefined) continue;
    const answer = fromBinary(method.output, Buffer.from(bytes, "base64"));
    service[method.name] = definitionOf(method);
    handlers[method.name] = (_call: unknown, reply: (error: null, answer: Message) => void): void =>
      reply(null, answer);
  }
  server.addService(service, handlers);
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) throw error;
    const listening: Listening = { port };
    process.send?.(listening);
  });
}

function definitionOf(method: DescMethod): MethodDefinition<Message, Message> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => Buffer.from(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  };
}

process.on("message", serve);
process.on("disconnect", () => process.exit(0));
