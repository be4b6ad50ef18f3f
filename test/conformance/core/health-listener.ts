/** A health stream as a case listens to it: what came, sorted, until it is closed. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "../../../services/process/clock.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  TargetKnowledge,
  WatchHealthResponse,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "./bench.ts";
import { unmet } from "./case.ts";
import type { SuiteTarget } from "./parameters.ts";
import { describeReply } from "./wire-client.ts";
import type { Reply } from "./wire-client.ts";

const pollMs = 50;
const kindsMax = 1_000;

export class HealthListener {
  /** Kinds of messages in their order: "snapshot", "change", "heartbeat". */
  readonly kinds: string[] = [];
  /** Stamps that the stream has shown. */
  readonly known = new Set<string>();
  readonly changed: Instance[] = [];
  readonly gone: Instance[] = [];
  readonly heartbeats: { readonly atMs: number; readonly targets: readonly TargetKnowledge[] }[] =
    [];
  /** The last part of the snapshot has come. */
  hasSnapshot = false;
  /** Nothing came before the snapshot's last part but its other parts. */
  isSnapshotFirst = true;
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;
  #end: string | undefined;

  /** @param heldUntilMs epoch ms until which the vendor behind all targets asked for a wait */
  constructor(bench: Bench, targets: readonly SuiteTarget[], heldUntilMs?: number) {
    const until = heldUntilMs === undefined ? undefined : timestampFromMs(heldUntilMs);
    const held = until === undefined ? [] : targets.map((target) => ({ target, until }));
    const request = { ownerCluster: bench.cluster, targets: [...targets], held };
    this.#reading = this.#read(bench.client.watchHealth(request, this.#stop.signal));
  }

  /** Resolves when `isSo` holds; throws Unmet when it does not in time, or the stream ends. */
  async until(what: string, waitMs: number, isSo: () => boolean): Promise<void> {
    const endMs = Date.now() + waitMs;
    while (!isSo()) {
      if (this.#end !== undefined) unmet(`${what} from the stream`, this.#end);
      if (Date.now() > endMs) unmet(`${what} within ${waitMs} ms`, `what came: ${this.#summary()}`);
      await systemClock.sleep(pollMs);
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }

  async #read(messages: AsyncIterable<Reply<WatchHealthResponse>>): Promise<void> {
    for await (const reply of messages) {
      if (reply.kind === "failure") {
        this.#end = `it ended with ${describeReply(reply)}`;
        return;
      }
      this.#took(reply.answer);
    }
    this.#end = "it ended";
  }

  #took({ event }: WatchHealthResponse): void {
    if (this.kinds.length < kindsMax) this.kinds.push(event.case ?? "unknown");
    if (event.case !== "snapshot" && !this.hasSnapshot) this.isSnapshotFirst = false;
    switch (event.case) {
      case "snapshot":
        for (const { stamp } of event.value.instances) this.known.add(stamp);
        if (event.value.isLast) this.hasSnapshot = true;
        return;
      case "change":
        for (const instance of event.value.changed) this.known.add(instance.stamp);
        this.changed.push(...event.value.changed);
        this.gone.push(...event.value.gone);
        return;
      case "heartbeat":
        this.heartbeats.push({ atMs: Date.now(), targets: event.value.targets });
        return;
      default:
        return;
    }
  }

  #summary(): string {
    const messages = this.heartbeats.at(-1)?.targets.map(({ message }) => message) ?? [];
    const count = `${this.kinds.length} messages, ${this.changed.length} changes`;
    return `${count}, ${this.heartbeats.length} heartbeats; last said: ${messages.join("; ")}`;
  }
}
