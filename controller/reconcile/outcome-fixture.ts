/** Outcomes of passes, for tests. */
import type { Outcome } from "./conditions.ts";
import type { ObservedInstance } from "./observed-instance.ts";

/** Ensure answered an instance that works, in the given state, changed as asked. */
export function ensuredAs(
  state: ObservedInstance["state"],
  change: Partial<ObservedInstance> = {},
): Outcome & { readonly kind: "ensured" } {
  return {
    kind: "ensured",
    endpoint: "https://a.example.com/api",
    instance: {
      providerID: "i-1",
      realm: "realm-1",
      state,
      availability: "AVAILABLE",
      billing: "CURRENT",
      isRateLimited: false,
      message: "",
      drift: [],
      usage: {},
      ...change,
    },
  };
}
