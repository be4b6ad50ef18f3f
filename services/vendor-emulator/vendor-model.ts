/**
 * What an emulator of one vendor has to say; everything else (HTTPS, faults, the port behind the
 * scenes, the record of requests) is the kit's (emulator.ts).
 */
import type { Breakage, Incident } from "./incident.ts";
import type {
  Edit,
  EmulatedInstance,
  Operation,
  Switches,
  VendorEffect,
  Vocabulary,
} from "./fault-words.ts";

/** One request to the vendor. Header names are in lower case. */
export interface ApiRequest {
  readonly method: string;
  /** Host header without port. */
  readonly host: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  /** At most 1 MiB. */
  readonly body: string;
}

/** Its answer. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; absent: an empty body. A text is sent as it is, with `headers`' content type. */
  readonly body?: unknown;
  /** What the request changed, for the record. */
  readonly change?: "created" | "updated" | "deleted";
  /** Which instance it changed, or showed. */
  readonly instanceId?: string;
}

/** How a request ended. */
export interface RequestEnd {
  /** The true answer; undefined: the request took no effect. */
  readonly truth: ApiAnswer | undefined;
  /** Status of what was sent, or why there was none. */
  readonly sent: number | Breakage;
  /** A fault had a hand in it. */
  readonly isDisturbed: boolean;
}

/** The vendor's world and words. Methods are called one at a time; none waits. */
export interface VendorModel {
  /** Names that the certificate has to carry: the vendor's API hosts. */
  readonly hosts: readonly string[];
  /** What it can be asked for; network effects are the kit's and need not be named. */
  readonly vocabulary: Pick<Vocabulary, "switches" | "edits"> & {
    readonly effects: readonly VendorEffect[];
  };
  /** What a request is for; undefined: something else, which only "any" befalls. */
  operationOf(request: ApiRequest): Exclude<Operation, "any"> | undefined;
  /** Carries a request out. */
  answer(request: ApiRequest): ApiAnswer;
  /**
   * The vendor's own answer for an effect of `vocabulary`.
   *
   * @param retryAfterMs when to come again, with "throttled"; undefined: no hint
   */
  say(effect: VendorEffect, request: ApiRequest, retryAfterMs: number | undefined): ApiAnswer;
  /** All switches as they are from now on. */
  turn(switches: Required<Switches>): void;
  /** @returns ids of instances that it made; throws an Error with plain words when it cannot */
  edit(edit: Edit): readonly string[];
  /** The truth, without lag. */
  instances(): readonly EmulatedInstance[];
  /** What befalls a request by faults in words of the vendor's own; undefined: nothing. */
  incidentOf?(request: ApiRequest): Incident | undefined;
  /** For a record of the vendor's own beside the kit's. */
  ended?(request: ApiRequest, end: RequestEnd): void;
}
