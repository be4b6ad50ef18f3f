/**
 * gRPC between controllers and adapters: requests and answers travel apart, and a caller may give up
 * while its call goes on.
 */
import type { ProviderClient } from "../../../services/contract/provider-client.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Clock } from "../../../services/process/clock.ts";
import type { Adapter } from "./adapter.ts";
import type { Turns } from "./turns.ts";

/** A call that its caller still waits for. */
interface Call {
  readonly caller: string;
  readonly label: string;
  /** The adapter process that works on it, once it has arrived. */
  adapter: Adapter | undefined;
  readonly deadlineMs: number;
  readonly fail: (error: ProviderError) => void;
}

export interface WireOptions {
  readonly turns: Turns;
  readonly clock: Clock;
  /** The process that answers at an address now. */
  readonly adapterAt: (address: string) => Adapter;
}

export class Wire {
  readonly #options: WireOptions;
  #calls: readonly Call[] = [];
  /** Calls sent by name: "ensure" to 3. */
  readonly counts = new Map<string, number>();

  constructor(options: WireOptions) {
    this.#options = options;
  }

  get calls(): readonly Call[] {
    return this.#calls;
  }

  get callCount(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** The client that one controller process holds of one address. */
  clientOf(caller: string, address: string): ProviderClient {
    const call =
      <Request, Response>(
        name: string,
        run: (adapter: Adapter, request: Request) => Promise<Response>,
      ) =>
      (request: Request, { deadlineMs }: { readonly deadlineMs: number }): Promise<Response> => {
        this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
        const label = `${name} of ${caller} at ${address}`;
        const untilMs = this.#options.clock.now() + deadlineMs;
        return new Promise((resolve, reject) => {
          const fail = (error: unknown): void => this.#settle(sent, () => reject(error));
          const sent: Call = { caller, label, adapter: undefined, deadlineMs: untilMs, fail };
          this.#calls = [...this.#calls, sent];
          this.#travel(sent, address, (adapter) => run(adapter, request)).then(
            (answer) => this.#settle(sent, () => resolve(answer)),
            fail,
          );
        });
      };
    return {
      getProviderInfo: (_request, _options) =>
        Promise.resolve(this.#options.adapterAt(address).info()),
      describe: call("describe", (adapter, request) => adapter.describe(request)),
      ensure: call("ensure", (adapter, request) => adapter.ensure(request)),
      delete: call("delete", (adapter, request) => adapter.delete(request)),
      release: call("release", (adapter, request) => adapter.release(request)),
      list: () => Promise.reject(new Error("the simulation lists nothing")),
      watchHealth: () => {
        throw new Error("the simulation watches no health");
      },
      close: () => undefined,
    };
  }

  /** The caller gives up, or its connection breaks: what happened is unknown to it. */
  lose(call: Call, code: "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "CANCELLED"): void {
    call.fail(ProviderError.foreign(code, `${call.label} has no answer`));
  }

  /** All connections to an adapter process break. */
  cut(adapter: Adapter): void {
    for (const call of this.#calls) if (call.adapter === adapter) this.lose(call, "UNAVAILABLE");
  }

  /** Deadlines that have passed. */
  expire(): void {
    const nowMs = this.#options.clock.now();
    for (const call of this.#calls) {
      if (call.deadlineMs <= nowMs) this.lose(call, "DEADLINE_EXCEEDED");
    }
  }

  async #travel<T>(call: Call, address: string, run: (adapter: Adapter) => Promise<T>): Promise<T> {
    const { turns } = this.#options;
    await turns.wait("wire", `${call.label} arrives`);
    const adapter = this.#options.adapterAt(address);
    call.adapter = adapter;
    const [end] = await Promise.allSettled([run(adapter)]);
    await turns.wait(adapter.owner, `${call.label} is answered`);
    if (end.status === "fulfilled") return end.value;
    throw end.reason;
  }

  /** Once, and only while the caller lives. */
  #settle(call: Call, end: () => void): void {
    if (!this.#calls.includes(call)) return;
    this.#calls = this.#calls.filter((candidate) => candidate !== call);
    if (!this.#options.turns.hasEnded(call.caller)) end();
  }
}
