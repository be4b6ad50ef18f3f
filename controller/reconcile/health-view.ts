/** What the health stream says of the instance that an object's record names. */
import type { ClassChoice } from "../resource/class-choice.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { ObservedInstance } from "./observed-instance.ts";

export type HealthView =
  /** Nobody watches it: its adapter cannot, or nothing is recorded. */
  | { readonly kind: "unwatched" }
  /** Watched, and not known yet; what stood stands. */
  | { readonly kind: "pending" }
  /** Read within the bound. */
  | {
      readonly kind: "seen";
      readonly instance: ObservedInstance;
      /** When the vendor was read, in the adapter's time; epoch ms. */
      readonly readAtMs: number;
    }
  /** The place was read within the bound, and the instance was not there. */
  | { readonly kind: "unseen" }
  /** Too old to be believed. */
  | {
      readonly kind: "stale";
      readonly reason: "HealthStale" | "AdapterUnreachable";
      readonly message: string;
    };

/** Where the reconciler asks. */
export interface HealthSource {
  view(object: DigitalHumanProvider, choice: ClassChoice): HealthView;
}

export const unwatched: HealthView = { kind: "unwatched" };
