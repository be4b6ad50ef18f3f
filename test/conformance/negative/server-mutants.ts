/** Faults below the handlers: the server, its process, and the bytes of errors. */
import { anyIs, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema } from "../../../proto/gen/google/rpc/error_details_pb.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Mutant } from "./mutant.ts";

export const serverMutants: readonly Mutant[] = [
  {
    name: "wants-no-deadline",
    what: "takes calls without a deadline",
    breaks: ["rule:deadline"],
    caughtBy: "requests/deadline-is-required",
    server: { takesCallsWithoutDeadline: true },
  },
  {
    name: "another-domain",
    what: "signs its errors with a domain of its own",
    breaks: ["list:reason"],
    caughtBy: "requests/missing-fields-are-named",
    server: {
      tamper: (status) => {
        status.details = status.details.map((detail) => {
          const info = anyIs(detail, ErrorInfoSchema)
            ? anyUnpack(detail, ErrorInfoSchema)
            : undefined;
          if (info === undefined) return detail;
          return anyPack(ErrorInfoSchema, { ...info, domain: "reference.example" });
        });
      },
    },
  },
  {
    name: "drops-all-details",
    what: "sends errors with a code and a text alone",
    breaks: ["list:reason", "list:outcome", "list:precondition"],
    caughtBy: "removal/never-existed-is-not-found",
    server: {
      tamper: (status) => {
        status.details = [];
      },
    },
  },
  {
    name: "crashes-on-what-is-new",
    what: "dies of a field that it does not know",
    breaks: ["rule:versions"],
    caughtBy: "versions/unknown-fields-do-no-harm",
    server: { crashesOn: (request) => hasUnknownFields(request) },
  },
  {
    name: "drops-what-is-in-flight",
    what: "ends at once on SIGTERM",
    breaks: ["rule:drain", "error:shutting-down"],
    caughtBy: "drain/finishes-what-is-in-flight",
    server: { onTerm: "exit-at-once" },
  },
  {
    name: "exits-with-1",
    what: "calls a stop in good order a failure",
    breaks: ["rule:drain"],
    caughtBy: "drain/idle-process-exits-with-0",
    server: { onTerm: "exit-1" },
  },
  {
    name: "does-not-stop",
    what: "does not heed SIGTERM",
    breaks: ["rule:drain", "error:shutting-down"],
    caughtBy: "drain/idle-process-exits-with-0",
    server: { onTerm: "stay" },
  },
  {
    name: "has-no-health",
    what: "serves no grpc.health.v1",
    breaks: ["rpc:operations"],
    caughtBy: "operations/health-says-serving",
    server: { hasNoHealth: true },
  },
  {
    name: "serves-strangers",
    what: "asks nobody for a certificate",
    breaks: ["rule:tls"],
    caughtBy: "tls/strangers-are-kept-out",
    server: { takesStrangers: true },
  },
  {
    name: "refuses-newer-callers",
    what: "answers a caller of a newer contract version with an error without a reason",
    breaks: ["error:version", "rule:versions"],
    caughtBy: "info/answers-every-contract-version",
    handlers: (right) => ({
      ...right,
      getProviderInfo: async (request, call) => {
        if (right.getProviderInfo === undefined) throw new Error("no getProviderInfo");
        if ((request.contractVersion ?? 1) <= 1) return await right.getProviderInfo(request, call);
        throw ProviderError.foreign("UNIMPLEMENTED", "what version is that?", undefined, {});
      },
    }),
  },
  {
    name: "says-two-names",
    what: "does not name itself by a DNS label",
    breaks: ["rpc:info", "list:capability"],
    caughtBy: "info/name-is-a-dns-label",
    handlers: (right) => ({
      ...right,
      getProviderInfo: async (request, call) => {
        if (right.getProviderInfo === undefined) throw new Error("no getProviderInfo");
        return { ...(await right.getProviderInfo(request, call)), name: "The Reference Vendor" };
      },
    }),
  },
];

/** Whether a message, or one inside it, carries fields that this version does not know. */
function hasUnknownFields(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  if ("$unknown" in message && Array.isArray(message.$unknown) && message.$unknown.length > 0) {
    return true;
  }
  return Object.values(message).some((value) => hasUnknownFields(value));
}
