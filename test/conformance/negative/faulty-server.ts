/** A gRPC server of its own for mutants whose fault lies below the handlers. */
import { readFileSync } from "node:fs";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMethod } from "@bufbuild/protobuf";
import { Metadata, Server, ServerCredentials } from "@grpc/grpc-js";
import type { ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { StatusSchema } from "../../../proto/gen/google/rpc/status_pb.ts";
import { detailsKey, grpcServiceOf, isMutation } from "../../../services/contract/grpc-service.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type {
  CallContext,
  ProviderHandlers,
} from "../../../services/contract/provider-handlers.ts";
import { addReflection } from "../../../services/contract/reflection.ts";
import { toWireStatus } from "../../../services/contract/status-from-error.ts";
import type { ServerFaults } from "./mutant.ts";

export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

type Handler = (request: unknown, call: CallContext) => unknown;

/** @returns the port */
export function startFaultyServer(
  handlers: ProviderHandlers,
  faults: ServerFaults,
  { port, tls }: { readonly port: number; readonly tls: TlsPair | undefined },
): Promise<number> {
  const server = new Server();
  const implementation = Object.fromEntries(
    ProviderAPI.methods.map((method) => {
      // The door of a test: a service's methods and its handlers have the same names.
      const handler = (handlers as Readonly<Record<string, Handler>>)[method.localName];
      const serve =
        method.methodKind === "server_streaming"
          ? (call: ServerWritableStream<Buffer, Buffer>) =>
              void stream(call, { method, handler, faults })
          : (
              call: ServerUnaryCall<Buffer, Buffer>,
              callback: (error: object | null, answer?: Buffer) => void,
            ) =>
              void unary(call, { method, handler, faults }).then(
                (answer) => callback(null, answer),
                (error: object) => callback(error),
              );
      return [method.localName, serve];
    }),
  );
  server.addService(grpcServiceOf(ProviderAPI), implementation);
  if (faults.hasNoHealth !== true) {
    new HealthImplementation({ "": "SERVING", [ProviderAPI.typeName]: "SERVING" }).addToServer(
      server,
    );
  }
  addReflection(server);
  process.on("SIGTERM", () => {
    if (faults.onTerm === "exit-at-once") process.exit(0);
    if (faults.onTerm === "exit-1") server.tryShutdown(() => process.exit(1));
    if (faults.onTerm === undefined) server.tryShutdown(() => process.exit(0));
  });
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(
          null,
          [{ cert_chain: readFileSync(tls.cert), private_key: readFileSync(tls.key) }],
          false,
        );
  return new Promise((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
}

interface Served {
  readonly method: DescMethod;
  readonly handler: Handler | undefined;
  readonly faults: ServerFaults;
}

async function unary(call: ServerUnaryCall<Buffer, Buffer>, served: Served): Promise<Buffer> {
  const { method, handler, faults } = served;
  try {
    const request = fromBinary(method.input, call.request);
    if (faults.crashesOn?.(request) === true) process.exit(134);
    const answer = await handler?.(request, contextOf(call, served));
    // The door of a test: a handler answers with its method's output.
    return Buffer.from(toBinary(method.output, answer as never));
  } catch (error) {
    throw responseOf(error, served);
  }
}

async function stream(call: ServerWritableStream<Buffer, Buffer>, served: Served): Promise<void> {
  const { method, handler } = served;
  try {
    const messages = handler?.(fromBinary(method.input, call.request), contextOf(call, served));
    for await (const message of messages as AsyncIterable<never>) {
      call.write(Buffer.from(toBinary(method.output, message)));
    }
    call.end();
  } catch (error) {
    call.emit("error", responseOf(error, served));
  }
}

function contextOf(
  call: ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>,
  { method, faults }: Served,
): CallContext {
  const deadlineAtMs = Number(call.getDeadline());
  const isFree = method.localName === "watchHealth" || method.localName === "getProviderInfo";
  if (!Number.isFinite(deadlineAtMs) && !isFree && faults.takesCallsWithoutDeadline !== true) {
    throw new ProviderError("INVALID_FIELD", "it has no deadline", { outcome: "NOT_APPLIED" });
  }
  const left = new AbortController();
  call.on("cancelled", () => left.abort(new Error("the caller left")));
  return { signal: left.signal, deadlineAtMs };
}

function responseOf(error: unknown, { method, faults }: Served): object {
  const known =
    error instanceof ProviderError
      ? error
      : ProviderError.foreign("INTERNAL", String(error), error, {});
  const { code, message, details } = toWireStatus(known, { isMutation: isMutation(method) });
  const status = fromBinary(StatusSchema, details);
  faults.tamper?.(status);
  const metadata = new Metadata();
  metadata.set(detailsKey, Buffer.from(toBinary(StatusSchema, status)));
  return { code, details: message, metadata };
}
