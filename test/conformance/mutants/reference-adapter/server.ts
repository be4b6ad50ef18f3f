/** ProviderAPI over grpc-js, with health, reflection, and an end in good order. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Metadata, Server } from "@grpc/grpc-js";
import type {
  sendUnaryData,
  ServerCredentials,
  ServerUnaryCall,
  ServerWritableStream,
} from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import {
  ProviderAPI,
  WatchHealthRequestSchema,
  WatchHealthResponseSchema,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { grpcServiceOf, isMutation } from "../../../../services/contract/grpc-service.ts";
import { addReflection } from "../../../../services/contract/reflection.ts";
import { ensure } from "./ensure.ts";
import { Failure, statusOf } from "./failure.ts";
import { watchHealth } from "./health-stream.ts";
import type { Send } from "./health-stream.ts";
import { describe, list } from "./looks.ts";
import { providerInfo } from "./provider-info.ts";
import { release, remove } from "./removal.ts";
import type { World } from "./world.ts";

const messageBytesMax = 4 << 20;
const serviceNames = ["", ProviderAPI.typeName] as const;
/** Our own word comes so long before the caller's deadline. */
const headStartMs = 40;

type Handler<I extends DescMessage, O extends DescMessage> = (
  world: World,
  request: MessageShape<I>,
  signal: AbortSignal,
) => Promise<MessageShape<O>>;

/** Told of each call that ended. */
export type OnCall = (call: { readonly rpc: string; readonly code: string }) => void;

export class ReferenceServer {
  readonly #world: World;
  readonly #onCall: OnCall;
  readonly #server = new Server({
    "grpc.max_receive_message_length": messageBytesMax,
    "grpc.enable_channelz": 1,
  });
  readonly #health = new HealthImplementation({});
  readonly #calls = new Set<Promise<void>>();
  readonly #streams = new Set<AbortController>();
  #isDraining = false;

  constructor(world: World, onCall: OnCall) {
    this.#world = world;
    this.#onCall = onCall;
    const { method } = ProviderAPI;
    this.#server.addService(grpcServiceOf(ProviderAPI), {
      getProviderInfo: this.#unary(method.getProviderInfo, providerInfo),
      ensure: this.#unary(method.ensure, ensure),
      describe: this.#unary(method.describe, describe),
      list: this.#unary(method.list, list),
      delete: this.#unary(method.delete, remove),
      release: this.#unary(method.release, release),
      watchHealth: (call: ServerWritableStream<Buffer, Buffer>) => void this.#watch(call),
    });
    this.#setServing(!world.mutations.has("never-serving"));
    this.#health.addToServer(this.#server);
    if (!world.mutations.has("no-reflection")) addReflection(this.#server);
  }

  /** @returns the port that was taken */
  listen(address: string, credentials: ServerCredentials): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, credentials, (error, port) => {
        if (error === null) resolve(port);
        else reject(error);
      });
    });
  }

  /** Refuses what is new and waits for what is in flight, at the vendor too. */
  async drain(): Promise<void> {
    const { mutations } = this.#world;
    this.#setServing(false);
    this.#isDraining = true;
    for (const stream of this.#streams) stream.abort();
    if (mutations.has("ends-calls-in-flight")) return;
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
    await this.#world.flights.idle();
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.abort();
    const flushed = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    const isOver = new AbortController();
    const late = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 300);
      isOver.signal.addEventListener("abort", () => clearTimeout(timer));
    });
    await Promise.race([flushed, late]);
    isOver.abort();
    this.#server.forceShutdown();
    this.#world.wire.close();
  }

  #setServing(isServing: boolean): void {
    for (const name of serviceNames) {
      this.#health.setStatus(name, isServing ? "SERVING" : "NOT_SERVING");
    }
  }

  #unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    handler: Handler<I, O>,
  ): (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void {
    return (call, callback) => {
      const answering = this.#answer(method, handler, call).then(
        (bytes) => {
          this.#onCall({ rpc: method.name, code: "OK" });
          callback(null, bytes);
        },
        (error: unknown) => callback(this.#errorOf(error, method), null),
      );
      this.#calls.add(answering);
      void answering.finally(() => this.#calls.delete(answering));
    };
  }

  async #answer<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    handler: Handler<I, O>,
    call: ServerUnaryCall<Buffer, Buffer>,
  ): Promise<Buffer> {
    const { mutations } = this.#world;
    this.#refuseWhileDraining();
    const isLocal = method.name === "GetProviderInfo";
    const untilMs = deadlineMs(call.getDeadline());
    if (!isLocal && untilMs === Infinity && !mutations.has("needs-no-deadline")) {
      throw new Failure("INVALID_FIELD", "a deadline is required", { outcome: "NOT_APPLIED" });
    }
    const request = decoded(method.input, call.request);
    if (mutations.has("refuses-unknown-fields") && (request.$unknown ?? []).length > 0) {
      throw new Failure("INVALID_FIELD", "unknown fields", { outcome: "NOT_APPLIED" });
    }
    const leaving = new AbortController();
    call.on("cancelled", () => leaving.abort());
    const leftMs = Math.min(Math.max(untilMs - Date.now() - headStartMs, 0), 3_600_000);
    const timer = setTimeout(() => leaving.abort(), leftMs);
    try {
      return Buffer.from(
        toBinary(method.output, await handler(this.#world, request, leaving.signal)),
      );
    } finally {
      clearTimeout(timer);
    }
  }

  async #watch(call: ServerWritableStream<Buffer, Buffer>): Promise<void> {
    const method = ProviderAPI.method.watchHealth;
    const leaving = new AbortController();
    call.on("cancelled", () => leaving.abort());
    this.#streams.add(leaving);
    try {
      this.#refuseWhileDraining();
      const request = decoded(WatchHealthRequestSchema, call.request);
      const { signal } = leaving;
      const send: Send = (message) => {
        const bytes = toBinary(WatchHealthResponseSchema, message);
        if (!signal.aborted) call.write(Buffer.from(bytes));
      };
      await watchHealth(this.#world, request, { send, signal });
      this.#refuseWhileDraining();
      call.end();
    } catch (error) {
      call.emit("error", this.#errorOf(error, method));
    } finally {
      this.#streams.delete(leaving);
    }
  }

  #refuseWhileDraining(): void {
    if (!this.#isDraining || this.#world.mutations.has("serves-while-stopping")) return;
    throw new Failure("SHUTTING_DOWN", "this process is stopping", { outcome: "NOT_APPLIED" });
  }

  #errorOf(error: unknown, method: (typeof ProviderAPI)["methods"][number]): object {
    const { mutations, accounts, log } = this.#world;
    const isOurs = error instanceof Failure;
    const words = error instanceof Error ? error.message : "";
    if (!isOurs) log({ rpc: method.name, stack: error instanceof Error ? error.stack : "" }, "bug");
    const failure = isOurs ? error : new Failure("VENDOR_ERROR", `a mistake of ours: ${words}`);
    const known = new Failure(failure.reason, accounts.withoutSecrets(failure.message), {
      ...failure.facts,
      outcome: failure.facts.outcome ?? "NOT_APPLIED",
    });
    const { code, message, details } = statusOf(known, {
      isMutation: isMutation(method),
      mutations,
    });
    this.#onCall({ rpc: method.name, code: failure.reason });
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from(details));
    return { code, details: message.slice(0, 500), metadata };
  }
}

function decoded<Desc extends DescMessage>(schema: Desc, bytes: Buffer): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    const facts = { outcome: "NOT_APPLIED" } as const;
    throw new Failure("INVALID_FIELD", "the request cannot be read", facts, cause);
  }
}

function deadlineMs(deadline: Date | number): number {
  return typeof deadline === "number" ? deadline : deadline.getTime();
}
