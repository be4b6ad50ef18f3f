/** Faults in what a vendor team writes: primitives, table of errors, what it says of itself. */
import type {
  Adapter,
  AdapterInfo,
  FoundInstance,
  Stamp,
} from "../../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Reason } from "../../../services/contract/provider-error.ts";
import type { Mutant } from "./mutant.ts";
import { send } from "./reference-adapter.ts";

type Change = (right: Adapter) => Partial<Adapter>;
const but =
  (change: Change): NonNullable<Mutant["adapter"]> =>
  (right) => ({ ...right, ...change(right) });

const says =
  (info: Partial<AdapterInfo>): NonNullable<Mutant["adapter"]> =>
  (right) => ({ ...right, info: { ...right.info, ...info } });

/** The table of errors with one row changed. */
const reads =
  (from: Reason, to: Reason): NonNullable<Mutant["adapter"]> =>
  (right) => ({
    ...right,
    classify: (response) => {
      const error = right.classify(response);
      if (error?.reason !== from) return error;
      return new ProviderError(to, error.message, error.facts);
    },
  });

/** Instances as the vendor shows them, each changed. */
const shows =
  (change: (found: FoundInstance) => FoundInstance): NonNullable<Mutant["adapter"]> =>
  (right) => ({
    ...right,
    read: async (call, id) => {
      const found = await right.read(call, id);
      return found === undefined ? undefined : change(found);
    },
    list: async (call, token) => {
      const page = await right.list(call, token);
      return { ...page, instances: page.instances.map(change) };
    },
  });

/** Keys of instances by id, in this process alone. */
function rememberingStamps(right: Adapter): Adapter {
  const stamps = new Map<string, Stamp>();
  const remembered = (found: FoundInstance): FoundInstance => {
    const stamp = stamps.get(found.id);
    return stamp === undefined ? found : { ...found, stamp };
  };
  return {
    ...shows(remembered)(right),
    create: async (call, wanted) => {
      const body = { ...wanted.parameters, name: wanted.displayName };
      const request = { method: "POST", path: "/items", body, isMutation: true } as const;
      const { id } = (await send(call, request)).json as { id: string };
      stamps.set(id, wanted.stamp);
      return id;
    },
  };
}

export const vendorMutants: readonly Mutant[] = [
  {
    name: "keeps-stamps-in-memory",
    what: "remembers whose an instance is instead of writing it to the vendor",
    breaks: ["rule:spare", "rule:identity", "list:stamp"],
    caughtBy: "spare/killed-between-commit-and-reply-makes-one",
    adapter: rememberingStamps,
  },
  {
    name: "creates-twice",
    what: "sends each create two times",
    breaks: ["rule:retries", "rule:identity"],
    caughtBy: "lost-answers/create-reset-before",
    adapter: but((right) => ({
      create: async (call, wanted) => {
        await right.create(call, wanted).catch(() => undefined);
        return await right.create(call, wanted);
      },
    })),
  },
  {
    name: "forbidden-is-absent",
    what: "reads 403 as absence",
    breaks: ["error:credential", "error:absent"],
    caughtBy: "credentials/too-weak-is-permission-denied",
    adapter: reads("MISSING_SCOPE", "NOT_FOUND"),
  },
  {
    name: "unauthorized-is-absent",
    what: "reads 401 as absence",
    breaks: ["error:credential", "error:absent"],
    caughtBy: "credentials/refused-is-unauthenticated",
    adapter: reads("BAD_CREDENTIAL", "NOT_FOUND"),
  },
  {
    name: "any-404-is-absent",
    what: "reads every 404 as absence, a wrong path too",
    breaks: ["error:absent"],
    caughtBy: "vendor-errors/wrong-path-is-no-absence",
    adapter: but((right) => ({
      classify: (response) =>
        response.status === 404
          ? new ProviderError("NOT_FOUND", "status 404")
          : right.classify(response),
    })),
  },
  {
    name: "404-is-unmapped",
    what: "passes the vendor's 404 on as a failure of the vendor",
    breaks: ["error:absent", "rule:deletion"],
    caughtBy: "removal/again-is-not-found",
    adapter: reads("NOT_FOUND", "VENDOR_ERROR"),
  },
  {
    name: "bad-value-is-a-vendor-failure",
    what: "reads a refused value as a failure of the vendor",
    breaks: ["error:bad-value"],
    caughtBy: "vendor-errors/create-bad-value",
    adapter: reads("INVALID_FIELD", "VENDOR_ERROR"),
  },
  {
    name: "busy-is-a-vendor-failure",
    what: "reads busy as a failure of the vendor",
    breaks: ["error:busy"],
    caughtBy: "vendor-errors/create-busy",
    adapter: reads("BUSY", "VENDOR_ERROR"),
  },
  {
    name: "throttled-is-a-vendor-failure",
    what: "reads throttling as a failure of the vendor",
    breaks: ["error:throttled"],
    caughtBy: "vendor-errors/create-throttled-with-a-hint",
    adapter: reads("THROTTLED", "VENDOR_ERROR"),
  },
  {
    name: "quota-is-throttling",
    what: "reads a used-up quota as throttling",
    breaks: ["error:quota"],
    caughtBy: "vendor-errors/create-quota-exhausted",
    adapter: reads("QUOTA_EXHAUSTED", "THROTTLED"),
  },
  {
    name: "billing-is-permission",
    what: "reads a stopped account as a missing right",
    breaks: ["error:billing"],
    caughtBy: "vendor-errors/create-billing-stopped",
    adapter: reads("BILLING_STOPPED", "MISSING_SCOPE"),
  },
  {
    name: "vendor-failure-is-a-bad-value",
    what: "reads the vendor's 500 as a refused value",
    breaks: ["error:vendor-failure", "list:outcome"],
    caughtBy: "vendor-errors/create-server-error",
    adapter: reads("VENDOR_ERROR", "INVALID_FIELD"),
  },
  {
    name: "never-waits-for-a-person",
    what: "calls an instance that waits for a person ready",
    breaks: ["error:awaiting-human"],
    caughtBy: "vendor-errors/waits-for-a-person",
    adapter: shows(({ action: _action, ...found }) =>
      found.state === "AWAITING_HUMAN" ? { ...found, state: "READY" } : found,
    ),
  },
  {
    name: "always-in-one-realm",
    what: "names the same realm whatever the account and region",
    breaks: ["error:wrong-realm"],
    caughtBy: "removal/other-realm-has-its-own",
    adapter: but(() => ({ realm: async () => "reference" })),
  },
  {
    name: "forgets-the-owner",
    what: "reads every stamp as if the asking cluster had written it",
    breaks: ["error:owned-by-another", "list:stamp"],
    caughtBy: "removal/another-clusters-is-not-ours",
    adapter: shows((found) =>
      found.stamp === undefined
        ? found
        : {
            ...found,
            stamp: { ...found.stamp, short: found.stamp.keyShort, cluster: "", uid: "" },
          },
    ),
  },
  {
    name: "trusts-one-scan",
    what: "believes a single list although lists lag",
    breaks: ["rule:identity"],
    caughtBy: "identity/one-lagging-scan-is-no-proof",
    adapter: says({ areListsConsistent: true }),
  },
  {
    name: "loses-a-page",
    what: "reads the first page of a list and no other",
    breaks: ["rpc:list"],
    caughtBy: "identity/every-page-is-read",
    adapter: but((right) => ({
      list: async (call, token) => {
        const { instances } = await right.list(call, token);
        return { instances };
      },
    })),
  },
  {
    name: "half-a-list-is-whole",
    what: "takes a page that fails for the end of the list",
    breaks: ["rule:identity", "error:absent"],
    caughtBy: "identity/half-a-list-proves-nothing",
    adapter: but((right) => ({
      list: async (call, token) => {
        try {
          return await right.list(call, token);
        } catch (error) {
          if (token === undefined) throw error;
          return { instances: [] };
        }
      },
    })),
  },
  {
    name: "takes-the-younger",
    what: "says of all instances that they were made at the same time, the newest first",
    breaks: ["rule:identity"],
    caughtBy: "identity/the-older-of-two-is-ours",
    adapter: shows((found) => ({ ...found, createdAtMs: 4_000_000_000_000 - found.createdAtMs })),
  },
  {
    name: "notation-is-drift",
    what: "compares values as they are written",
    breaks: ["rpc:describe"],
    caughtBy: "console/another-notation-is-no-drift",
    adapter: but((right) => ({
      read: async (call, id) => {
        const found = await right.read(call, id);
        if (found === undefined) return undefined;
        const request = { method: "GET", path: `/items/${id}`, isMutation: false } as const;
        const { json } = await send(call, request);
        const { speed } = json as { speed: string };
        return { ...found, parameters: { ...found.parameters, speed } };
      },
      list: async (call, token) => {
        const page = await right.list(call, token);
        const query = token === undefined ? {} : { after: token };
        const request = { method: "GET", path: "/items", query, isMutation: false } as const;
        const { items } = (await send(call, request)).json as { items: { speed: string }[] };
        const instances = page.instances.map((found, at) => ({
          ...found,
          parameters: { ...found.parameters, speed: items[at]?.speed ?? "" },
        }));
        return { ...page, instances };
      },
    })),
  },
  {
    name: "blind-to-drift",
    what: "shows the wanted values instead of the vendor's",
    breaks: ["rpc:describe", "list:change"],
    caughtBy: "console/change-is-drift",
    adapter: shows((found) => ({ ...found, parameters: {} })),
  },
  {
    name: "deleted-at-once",
    what: "says deleted while the vendor is still at it",
    breaks: ["rule:deletion"],
    caughtBy: "console/slow-removals-are-deleting",
    adapter: but((right) => ({
      ...shows((found) => ({ ...found, state: "READY" }))(right),
      delete: async (call, found) =>
        (await right.delete(call, found)) === "absent" ? "absent" : "deleted",
      read: async (call, id) => {
        const found = await right.read(call, id);
        return found?.state === "DELETING" ? undefined : found;
      },
    })),
  },
  {
    name: "lies-about-release",
    what: "declares RELEASE and leaves the stamp on",
    breaks: ["rpc:release", "list:capability"],
    caughtBy: "release/takes-the-stamp-off",
    adapter: but(() => ({ release: async () => undefined })),
  },
  {
    name: "lies-about-update",
    what: "declares UPDATE and changes nothing",
    breaks: ["list:capability", "list:change"],
    caughtBy: "ensure/changed-is-updated-and-back",
    adapter: but(() => ({ update: async () => undefined })),
  },
  {
    name: "changes-the-immutable",
    what: "does not know which field cannot be changed",
    breaks: ["error:immutable"],
    caughtBy: "ensure/immutable-is-said",
    adapter: says({ immutableFields: [] }),
  },
  {
    name: "takes-any-parameter",
    what: "has a schema that takes everything",
    breaks: ["error:bad-value"],
    caughtBy: "ensure/bad-parameter-is-named",
    adapter: says({ parameterSchema: { type: "object" } }),
  },
  {
    name: "health-is-always-good",
    what: "says that every instance works",
    breaks: ["rpc:watch-health", "list:state"],
    caughtBy: "health/broken-and-mended-are-seen",
    adapter: shows((found) => ({ ...found, availability: "AVAILABLE" })),
  },
  {
    name: "billing-is-always-current",
    what: "never reads how the account stands",
    breaks: ["rpc:watch-health", "error:billing"],
    caughtBy: "health/overdue-is-seen",
    adapter: shows((found) => ({ ...found, billing: "CURRENT" })),
  },
];
