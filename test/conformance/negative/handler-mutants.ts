/** Faults in what the host does for a vendor team: order, locks, checks, errors. */
import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  DescribeRequestSchema,
  EnsureRequestSchema,
  ListRequestSchema,
  WatchHealthResponseSchema,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  EnsureRequest,
  WatchHealthResponse,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Reason } from "../../../services/contract/provider-error.ts";
import type { ProviderHandlers } from "../../../services/contract/provider-handlers.ts";
import { withErrors } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

/** Ensure with its request changed. */
const ensures =
  (change: (request: EnsureRequest) => void): NonNullable<Mutant["handlers"]> =>
  (right) => ({
    ...right,
    ensure: (request, call) => {
      const changed = clone(EnsureRequestSchema, request);
      change(changed);
      return right.ensure?.(changed, call) ?? Promise.reject(new Error("no ensure"));
    },
  });

/** Errors with other facts. */
const errs =
  (change: (error: ProviderError) => unknown): NonNullable<Mutant["handlers"]> =>
  (right) =>
    withErrors(right, change);

const withFacts = (error: ProviderError, facts: ProviderError["facts"]): ProviderError =>
  error.reason === undefined ? error : new ProviderError(error.reason, error.message, facts);

function without(facts: ProviderError["facts"], name: keyof ProviderError["facts"]): object {
  return Object.fromEntries(Object.entries(facts).filter(([one]) => one !== name));
}

/** A health stream with its messages filtered and changed. */
const streams =
  (
    change: (messages: AsyncIterable<WatchHealthResponse>) => AsyncIterable<WatchHealthResponse>,
  ): NonNullable<Mutant["handlers"]> =>
  (right) => ({
    ...right,
    watchHealth: (request, call) => change(right.watchHealth?.(request, call) ?? nothing()),
  });

async function* nothing(): AsyncGenerator<WatchHealthResponse> {
  yield* [];
}

const later = (): ReturnType<typeof timestampFromMs> => timestampFromMs(Date.now() + 60_000);

export const handlerMutants: readonly Mutant[] = [
  {
    name: "creates-unasked",
    what: "creates although may_create is false",
    breaks: ["error:in-doubt"],
    caughtBy: "ensure/may-create-false-makes-nothing",
    handlers: ensures((request) => {
      request.mayCreate = true;
    }),
  },
  {
    name: "ignores-not-after",
    what: "acts however late it is",
    breaks: ["error:too-late"],
    caughtBy: "requests/not-after-holds-back-a-create",
    handlers: ensures((request) => {
      request.notAfter = later();
    }),
  },
  {
    name: "validates-by-making",
    what: "makes the instance that it was asked to check",
    breaks: ["list:capability"],
    caughtBy: "ensure/validate-only-makes-nothing",
    handlers: ensures((request) => {
      request.validateOnly = false;
    }),
  },
  {
    name: "ignores-the-recorded-realm",
    what: "acts in another realm than the recorded one",
    breaks: ["error:wrong-realm"],
    caughtBy: "ensure/recorded-realm-that-is-wrong",
    handlers: ensures((request) => {
      delete request.recorded;
    }),
  },
  {
    name: "takes-over-from-anybody",
    what: "adopts an instance of another owner than the named one",
    breaks: ["error:owned-by-another"],
    caughtBy: "ensure/takes-over-from-the-named-owner-only",
    handlers: (right) => ({
      ...right,
      ensure: async (request, call) => {
        if (request.adopt?.takeOverFrom === undefined)
          return await must(right).ensure(request, call);
        const described = await must(right).describe(
          create(DescribeRequestSchema, {
            instanceKey: request.instanceKey,
            owner: request.owner,
            target: request.target,
            recorded: { providerId: request.adopt.providerId, realm: "" },
          }),
          call,
        );
        const changed = clone(EnsureRequestSchema, request);
        if (changed.adopt !== undefined && described.instance?.owner !== undefined) {
          changed.adopt.takeOverFrom = described.instance.owner;
        }
        return await must(right).ensure(changed, call);
      },
    }),
  },
  {
    name: "frees-the-key",
    what: "knows of no other call on the key, and remembers no result",
    breaks: ["rule:one-at-a-time", "rule:deadline"],
    caughtBy: "concurrency/a-change-in-flight-holds-its-key",
    handlers: (right, ground) => ({
      ...right,
      ensure: (request, call) => must(ground.newHandlers()).ensure(request, call),
      delete: (request, call) => must(ground.newHandlers()).delete(request, call),
      release: (request, call) => must(ground.newHandlers()).release(request, call),
    }),
  },
  {
    name: "forgets-what-outlived-its-caller",
    what: "does not remember what came of a create whose caller had left",
    breaks: ["rule:deadline"],
    caughtBy: "lost-answers/result-is-remembered-while-lists-lag",
    host: { aftermathsMax: 0 },
  },
  {
    name: "rolls-back-on-cancel",
    what: "lets go of the key when the caller leaves",
    breaks: ["rule:deadline", "rule:one-at-a-time"],
    caughtBy: "lost-answers/cancelled-create-runs-on",
    handlers: (right, ground) => ({
      ...right,
      ensure: async (request, call) => {
        const { promise, reject } = Promise.withResolvers<never>();
        promise.catch(() => undefined);
        call.signal.addEventListener("abort", () => reject(new Error("left")), { once: true });
        return await Promise.race([must(ground.newHandlers()).ensure(request, call), promise]);
      },
    }),
  },
  {
    name: "ignores-deadlines",
    what: "goes on looking when nobody waits any more, and answers only then",
    breaks: ["rule:deadline"],
    caughtBy: "lost-answers/look-ends-with-its-deadline",
    gateway: (right) => ({ ...right, readTimeoutMs: 30_000 }),
    handlers: (right) => ({
      ...right,
      describe: (request, call) =>
        must(right).describe(request, { ...call, signal: new AbortController().signal }),
    }),
  },
  {
    name: "sends-again",
    what: "repeats a create that failed, in the same call",
    breaks: ["rule:retries"],
    caughtBy: "lost-answers/create-reset-before",
    handlers: (right) => ({
      ...right,
      ensure: async (request, call) => {
        try {
          return await must(right).ensure(request, call);
        } catch (error) {
          if (!(error instanceof ProviderError) || error.code !== "UNAVAILABLE") throw error;
          return await must(right).ensure(request, call);
        }
      },
    }),
  },
  {
    name: "says-not-applied",
    what: "says that nothing was done when the answer was lost",
    breaks: ["list:outcome", "error:vendor-failure"],
    caughtBy: "lost-answers/create-reset-before",
    handlers: errs((error) =>
      error.outcome === "UNKNOWN"
        ? withFacts(error, { ...error.facts, outcome: "NOT_APPLIED" })
        : error,
    ),
  },
  {
    name: "never-knows-the-outcome",
    what: "says UNKNOWN of what was refused before it was sent",
    breaks: ["list:outcome"],
    caughtBy: "requests/missing-fields-are-named",
    handlers: errs((error) => withFacts(error, { ...error.facts, outcome: "UNKNOWN" })),
  },
  {
    name: "forgets-when-to-retry",
    what: "says no RetryInfo",
    breaks: ["error:throttled", "error:in-doubt"],
    caughtBy: "vendor-errors/create-throttled-without-a-hint",
    handlers: errs((error) => {
      return withFacts(error, without(error.facts, "retryAfterMs"));
    }),
  },
  {
    name: "forgets-the-fields",
    what: "says that a request is wrong, but not where",
    breaks: ["error:bad-value"],
    caughtBy: "requests/missing-fields-are-named",
    handlers: errs((error) => {
      return withFacts(error, without(error.facts, "fields"));
    }),
  },
  {
    name: "forgets-the-realm",
    what: "attests absence without saying where",
    breaks: ["error:absent"],
    caughtBy: "removal/never-existed-is-not-found",
    handlers: errs((error) => {
      return withFacts(error, without(error.facts, "realm"));
    }),
  },
  {
    name: "forgets-the-owners-name",
    what: "says that an instance belongs to another, but not to whom",
    breaks: ["error:owned-by-another"],
    caughtBy: "ensure/another-clusters-is-left-alone",
    handlers: errs((error) => {
      return withFacts(error, without(error.facts, "owner"));
    }),
  },
  {
    name: "drops-the-reason",
    what: "sends errors without ErrorInfo",
    breaks: ["list:reason"],
    caughtBy: "requests/missing-fields-are-named",
    handlers: errs((error) => ProviderError.foreign(error.code, error.message, error, error.facts)),
  },
  {
    name: "invents-a-reason",
    what: "has a reason of its own for absence",
    breaks: ["list:reason"],
    caughtBy: "removal/never-existed-is-not-found",
    handlers: errs((error) =>
      error.reason === "NOT_FOUND"
        ? new ProviderError("GONE_FISHING" as Reason, error.message, {
            ...error.facts,
            code: "NOT_FOUND",
          })
        : error,
    ),
  },
  {
    name: "another-code",
    what: "sends BUSY as INTERNAL",
    breaks: ["error:busy", "list:reason"],
    caughtBy: "concurrency/a-change-in-flight-holds-its-key",
    handlers: errs((error) =>
      error.reason === "BUSY" ? withFacts(error, { ...error.facts, code: "INTERNAL" }) : error,
    ),
  },
  {
    name: "leaks-the-key",
    what: "repeats the credential in an error",
    breaks: ["rule:credentials"],
    caughtBy: "secrets/in-no-answer",
    handlers: (right, ground) =>
      withErrors(right, (error) => {
        const shown = Array.from(ground.secret()).join("\u200b").replaceAll("\u200b", "");
        return withFacts(error, { ...error.facts, resource: shown, realm: shown });
      }),
  },
  {
    name: "logs-the-key",
    what: "writes the credential into its log",
    breaks: ["rule:credentials"],
    caughtBy: "secrets/in-no-log",
    handlers: (right, ground) => ({
      ...right,
      ensure: (request, call) => {
        ground.say(`ensuring with ${ground.secret()}`);
        return must(right).ensure(request, call);
      },
    }),
  },
  {
    name: "needs-a-restart",
    what: "reads credentials once",
    breaks: ["rule:credentials"],
    caughtBy: "credentials/rotate-without-a-restart",
    accounts: (right) => {
      const first = new Map<string, Promise<Readonly<Record<string, string>>>>();
      return {
        names: right.names,
        find: (name) => right.find(name),
        credentialOf: (account) => {
          const known = first.get(account.name) ?? right.credentialOf(account);
          first.set(account.name, known);
          return known;
        },
      };
    },
  },
  {
    name: "falls-back-to-the-default-account",
    what: "takes the default account for one that it does not know",
    breaks: ["error:bad-value"],
    caughtBy: "requests/unknown-account",
    accounts: (right) => ({
      names: right.names,
      find: async (name) => (await right.find(name)) ?? (await right.find("default")),
      credentialOf: (account) => right.credentialOf(account),
    }),
  },
  {
    name: "takes-any-endpoint",
    what: "connects to whatever host it is told",
    breaks: ["rule:endpoints"],
    caughtBy: "requests/endpoint-is-checked",
    accounts: (right) => ({
      names: right.names,
      find: async (name) => {
        const account = await right.find(name);
        return account && { ...account, endpointHosts: ["*.invalid", "*.example", "*.com"] };
      },
      credentialOf: (account) => right.credentialOf(account),
    }),
  },
  {
    name: "has-no-breaker",
    what: "asks a vendor that fails, however often it fails",
    breaks: ["error:circuit-open"],
    caughtBy: "circuit/opens-asks-nobody-and-closes",
    gateway: (right) => ({ ...right, breaker: { ...right.breaker, verdictCountMin: 1_000_000 } }),
  },
  {
    name: "breaker-counts-callers",
    what: "opens the circuit on refused credentials",
    breaks: ["error:circuit-open", "error:credential"],
    caughtBy: "credentials/refusals-never-open-the-circuit",
    handlers: (right) => {
      let failures = 0;
      return withErrors(
        {
          ...right,
          describe: async (request, call) => {
            if (failures > 10)
              throw new ProviderError("CIRCUIT_OPEN", "open", { retryAfterMs: 500 });
            const answer = await must(right).describe(request, call);
            failures = 0;
            return answer;
          },
        },
        (error) => {
          failures += error.reason === "BAD_CREDENTIAL" ? 1 : 0;
          return error;
        },
      );
    },
  },
  {
    name: "takes-bodies-of-any-size",
    what: "reads whatever the vendor sends, and calls it an answer",
    breaks: ["rule:bounds"],
    caughtBy: "lost-answers/look-oversized",
    adapter: (right) => ({
      ...right,
      read: async (call, id) => {
        try {
          return await right.read(call, id);
        } catch (error) {
          const isTooLarge = error instanceof ProviderError && error.reason === "VENDOR_UNREADABLE";
          if (isTooLarge) return undefined;
          throw error;
        }
      },
      list: async (call, token) => {
        try {
          return await right.list(call, token);
        } catch (error) {
          const isTooLarge = error instanceof ProviderError && error.reason === "VENDOR_UNREADABLE";
          if (isTooLarge) return { instances: [] };
          throw error;
        }
      },
    }),
  },
  {
    name: "takes-long-keys",
    what: "takes keys of any length",
    breaks: ["rule:bounds"],
    caughtBy: "requests/one-too-long-is-refused",
    handlers: (right) => ({
      ...right,
      describe: (request, call) => {
        const changed = clone(DescribeRequestSchema, request);
        changed.instanceKey = changed.instanceKey.slice(0, 382);
        return must(right).describe(changed, call);
      },
      ensure: (request, call) => {
        const changed = clone(EnsureRequestSchema, request);
        changed.instanceKey = changed.instanceKey.slice(0, 382);
        return must(right).ensure(changed, call);
      },
    }),
  },
  {
    name: "looks-with-side-effects",
    what: "corrects drift in Describe",
    breaks: ["rpc:describe"],
    caughtBy: "describe/changes-nothing",
    handlers: (right) => ({
      ...right,
      describe: async (request, call) => {
        const { instanceKey, owner, target, spec } = request;
        if (spec !== undefined) {
          const ask = { instanceKey, owner, target, spec, mayCreate: false, notAfter: later() };
          await must(right)
            .ensure(create(EnsureRequestSchema, ask), call)
            .catch(() => undefined);
        }
        return await must(right).describe(request, call);
      },
    }),
  },
  {
    name: "absent-is-zero",
    what: "reads an absent quota as a quota of nothing",
    breaks: ["rule:versions"],
    caughtBy: "ensure/absent-is-not-compared",
    handlers: ensures((request) => {
      if (request.spec !== undefined) request.spec.displayName ??= "";
    }),
  },
  {
    name: "takes-any-page-token",
    what: "begins anew when it does not know a page token",
    breaks: ["rpc:list"],
    caughtBy: "list/bad-tokens-are-refused",
    handlers: (right) => ({
      ...right,
      list: async (request, call) => {
        try {
          return await must(right).list(request, call);
        } catch (error) {
          if (!(error instanceof ProviderError) || error.reason !== "INVALID_FIELD") throw error;
          return await must(right).list({ ...request, pageToken: "" }, call);
        }
      },
    }),
  },
  {
    name: "lists-everybodys",
    what: "lists every owner's instances, whoever was asked for",
    breaks: ["rpc:list"],
    caughtBy: "list/shows-one-owners-alone",
    handlers: (right) => ({
      ...right,
      list: (request, call) => {
        const changed = clone(ListRequestSchema, request);
        delete changed.ownerCluster;
        return must(right).list(changed, call);
      },
    }),
  },
  {
    name: "cannot-delete-after-all",
    what: "declares DELETE and answers that it cannot",
    breaks: ["error:cannot-be-deleted", "list:capability"],
    caughtBy: "removal/ends-what-is-there",
    handlers: (right) => ({
      ...right,
      delete: async () => {
        throw new ProviderError("UNSUPPORTED", "no delete here", { outcome: "NOT_APPLIED" });
      },
    }),
  },
  {
    name: "has-no-heartbeat",
    what: "sends no heartbeat",
    breaks: ["rpc:watch-health"],
    caughtBy: "health/heartbeats-say-how-old-it-is",
    handlers: streams(async function* (messages) {
      for await (const message of messages) if (message.event.case !== "heartbeat") yield message;
    }),
  },
  {
    name: "has-no-snapshot",
    what: "sends no snapshot",
    breaks: ["rpc:watch-health"],
    caughtBy: "health/snapshot-first-of-the-owner-alone",
    handlers: streams(async function* (messages) {
      for await (const message of messages) if (message.event.case !== "snapshot") yield message;
    }),
  },
  {
    name: "is-always-fresh",
    what: "says in each heartbeat that it has just looked",
    breaks: ["rpc:watch-health"],
    caughtBy: "health/silent-vendor-makes-knowledge-old",
    handlers: streams(async function* (messages) {
      for await (const message of messages) {
        if (message.event.case !== "heartbeat") yield message;
        else {
          const changed = clone(WatchHealthResponseSchema, message);
          if (changed.event.case === "heartbeat") {
            for (const target of changed.event.value.targets) {
              target.observedAt = timestampFromMs(Date.now());
              target.message = "";
            }
          }
          yield changed;
        }
      }
    }),
  },
  {
    name: "never-tells-who-is-gone",
    what: "keeps what is gone to itself",
    breaks: ["rpc:watch-health"],
    caughtBy: "health/gone-is-seen",
    handlers: streams(async function* (messages) {
      for await (const message of messages) {
        if (message.event.case === "change") message.event.value.gone = [];
        yield message;
      }
    }),
  },
];

type All = Required<ProviderHandlers>;

function must(handlers: ProviderHandlers): All {
  // The door of a test: the reference adapter has all handlers.
  return handlers as All;
}
