/**
 * What befalls one request, step by step: what the common words (fault-words.ts) and a vendor's own
 * words for faults both become before api-server.ts carries it out.
 */
import { assertNever } from "../process/assert-never.ts";
import { networkEffects } from "./fault-words.ts";
import type { Fault, NetworkEffect } from "./fault-words.ts";
import type { ApiAnswer, ApiRequest, VendorModel } from "./vendor-model.ts";

export interface Incident {
  /** How long nothing is done at first. */
  readonly delayMs?: number;
  /** What happens then at the vendor, before the request is carried out. */
  readonly meanwhile?: () => void;
  /** False: the request takes no effect. */
  readonly isCarriedOut: boolean;
  /** How long the answer is held back after the effect. */
  readonly answerDelayMs?: number;
  readonly ending: Ending;
}

export type Ending =
  /** The true answer. */
  | { readonly kind: "truth" }
  /** Another answer; asked for after the effect. */
  | { readonly kind: "instead"; readonly answer: (truth: ApiAnswer | undefined) => ApiAnswer }
  | { readonly kind: Breakage };

/** Endings without a whole answer; each as the network effect of its name. */
export type Breakage = "reset" | "cut" | "hang" | "oversized";

/** Nothing befalls it. */
export const undisturbed: Incident = { isCarriedOut: true, ending: { kind: "truth" } };

const page: ApiAnswer = { status: 200, body: "<html><h1>Welcome</h1></html>" };
const elsewhere: ApiAnswer = { status: 302, headers: { location: "https://elsewhere.example/" } };

/** @param model who says what a vendor effect sounds like */
export function incidentOf(
  fault: Fault,
  request: ApiRequest,
  model: Pick<VendorModel, "say">,
): Incident {
  const { effect, moment, delayMs = 0, retryAfterMs } = fault;
  const isCarriedOut = moment === "after";
  if (!isNetworkEffect(effect)) {
    const answer = (): ApiAnswer => model.say(effect, request, retryAfterMs);
    return { isCarriedOut, ending: { kind: "instead", answer } };
  }
  switch (effect) {
    case "slow":
      // Before: the vendor takes its time; after: its answer does.
      return { ...undisturbed, ...(isCarriedOut ? { answerDelayMs: delayMs } : { delayMs }) };
    case "cut":
      // Half of the true answer: there has to be one.
      return { isCarriedOut: true, ending: { kind: effect } };
    case "hang":
    case "reset":
    case "oversized":
      return { isCarriedOut, ending: { kind: effect } };
    case "html":
      return { isCarriedOut, ending: { kind: "instead", answer: () => page } };
    case "redirect":
      return { isCarriedOut, ending: { kind: "instead", answer: () => elsewhere } };
    case "again":
      return { isCarriedOut: true, ending: { kind: "instead", answer: firstOf(fault) } };
    case "echo":
      return { isCarriedOut, ending: { kind: "instead", answer: () => echoOf(request) } };
    default:
      return assertNever(effect);
  }
}

/** What the first request that a fault befell was answered. */
const firstAnswers = new WeakMap<Fault, ApiAnswer>();

function firstOf(fault: Fault): (truth: ApiAnswer | undefined) => ApiAnswer {
  return (truth = { status: 200 }) => {
    const first = firstAnswers.get(fault) ?? truth;
    firstAnswers.set(fault, first);
    return first;
  };
}

/** Under each name that an adapter may take its words from. */
function echoOf({ method, path, headers }: ApiRequest): ApiAnswer {
  const sent = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const message = `cannot serve ${method} ${path} with ${sent.join(", ")}`;
  const words = { message, code: "internal_error", status: "internal_error" };
  const body = { ...words, error: words, detail: words, headers };
  return { status: 500, headers: { "x-sent": encodeURIComponent(message).slice(0, 4_000) }, body };
}

function isNetworkEffect(effect: Fault["effect"]): effect is NetworkEffect {
  return networkEffects.some((name) => name === effect);
}
