/** The bridge from a protobuf-es service description to grpc-js, and what both ends ask of it. */
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { setLogger } from "@grpc/grpc-js";
import type { ServiceDefinition } from "@grpc/grpc-js";

import { redactText } from "../process/redaction.ts";
import type { Log } from "../process/log.ts";

/**
 * The service as grpc-js wants it. Messages pass as bytes: both ends encode and decode themselves,
 * so that a message that cannot be read becomes an error of ours and not the library's.
 */
export function grpcServiceOf(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: grpcPathOf(method),
        requestStream:
          method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
        responseStream:
          method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
        requestSerialize: sameBytes,
        requestDeserialize: sameBytes,
        responseSerialize: sameBytes,
        responseDeserialize: sameBytes,
      },
    ]),
  );
}

/** The HTTP/2 path of a method: "/dhp.provider.v1.ProviderAPI/Ensure". */
export function grpcPathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** True unless the proto says NO_SIDE_EFFECTS. */
export function isMutation(method: DescMethod): boolean {
  return method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** Bytes as they are. */
export function sameBytes(bytes: Buffer): Buffer {
  return bytes;
}

/** One finished call, for a metrics file. */
export interface ObservedCall {
  /** The RPC's name in the proto: "Ensure". */
  readonly method: string;
  /** gRPC status by name, "OK" included. */
  readonly code: string;
  readonly durationMs: number;
}
export type ObserveCall = (call: ObservedCall) => void;

/** The trailer that carries google.rpc.Status. */
export const detailsKey = "grpc-status-details-bin";
/** A negative value tells the caller's transport not to retry: the answer is the adapter's own. */
export const pushbackKey = "grpc-retry-pushback-ms";

/** Sends what the library would print by itself into the log. One log a process: the last one set. */
export function routeGrpcLog(log: Log): void {
  const line = (parts: readonly unknown[]): object => ({ text: redactText(parts.join(" ")) });
  setLogger({
    error: (...parts: unknown[]) => log.warn(line(parts), "gRPC library reports an error"),
    info: (...parts: unknown[]) => log.debug(line(parts), "gRPC library reports"),
    debug: (...parts: unknown[]) => log.debug(line(parts), "gRPC library reports"),
  });
}
