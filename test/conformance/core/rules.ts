/**
 * What the contract promises, as a list: each row of the table of errors, each rule for adapters, each
 * closed list. Every case names what it checks; a test sees to it that nothing here goes unchecked.
 */

/** What the vendor says and what the caller must get: one id for each row of the table of errors. */
export const errorRows = {
  "error:bad-value": "a bad value is INVALID_ARGUMENT with the paths of the fields",
  "error:absent": "absence that the vendor attests is NOT_FOUND with the realm, nothing else is",
  "error:owned-by-another":
    "another cluster's instance is never touched: Ensure ALREADY_EXISTS, Delete and Release NOT_FOUND (NOT_OURS)",
  "error:immutable": "a field that cannot be changed is FAILED_PRECONDITION with its path",
  "error:cannot-be-deleted": "what the vendor's API cannot do is not declared as a capability",
  "error:too-late": "without not_after, or past it, nothing is sent: ABORTED (TOO_LATE)",
  "error:in-doubt": "absent and may_create false is ABORTED (IN_DOUBT) with RetryInfo",
  "error:wrong-realm": "another realm than the recorded one is FAILED_PRECONDITION (WRONG_REALM)",
  "error:shutting-down": "a stopping adapter answers UNAVAILABLE (SHUTTING_DOWN, NOT_APPLIED)",
  "error:version": "a version or method that is missing is UNIMPLEMENTED with a reason",
  "error:credential":
    "a bad credential is UNAUTHENTICATED, a missing scope PERMISSION_DENIED; never NOT_FOUND",
  "error:throttled": "throttling is RESOURCE_EXHAUSTED with RetryInfo",
  "error:quota": "a used-up quota is RESOURCE_EXHAUSTED with QuotaFailure",
  "error:billing": "an account stopped over billing is FAILED_PRECONDITION (BILLING)",
  "error:busy": "busy or in the wrong state is ABORTED (BUSY)",
  "error:awaiting-human": "waiting for a person is OK with AWAITING_HUMAN and what to do",
  "error:vendor-failure":
    "5xx, reset, time-out and unreadable bodies are UNAVAILABLE or DEADLINE_EXCEEDED, UNKNOWN once a mutation was sent",
  "error:circuit-open": "an open circuit is UNAVAILABLE (CIRCUIT_OPEN, NOT_APPLIED) with RetryInfo",
} as const;

/** The numbered rules of an adapter. */
export const adapterRules = {
  "rule:deadline":
    "each call has a deadline; what was sent to the vendor runs on and its result is remembered",
  "rule:retries": "an adapter sends a mutation once in a call and never repeats it by itself",
  "rule:one-at-a-time": "mutations of one key never overlap: the second gets ABORTED",
  "rule:identity":
    "recorded id first, key second; absence needs proof; of several, the oldest is ours",
  "rule:deletion": "deleted is finished when Describe agrees",
  "rule:credentials": "credentials rotate without a restart and appear nowhere",
  "rule:endpoints":
    "allowed hosts over https only; no private address, no redirect to another host",
  "rule:bounds": "bodies, lists and requests have limits",
  "rule:drain": "SIGTERM: not serving, new calls refused, those in flight finished, exit 0",
  "rule:spare": "a fresh process with empty memory is as safe as the one before it",
  "rule:tls": "with certificates mounted, only clients of that authority are served",
  "rule:versions": "older and newer callers work, or are told which version is missing",
} as const;

/** The closed lists, and what else the messages promise. */
export const messageRules = {
  "list:capability": "what is declared works, and what is not declared is refused",
  "list:reason": "ErrorInfo.reason is of the list, its domain dhp.example.com, its code the list's",
  "list:precondition": "PreconditionFailure.type is of the list",
  "list:outcome": "every failed mutation says what it did at the vendor",
  "list:change": "Ensure says what it did",
  "list:state": "states, availability and billing are of their lists",
  "list:stamp": "stamps have the contract's form and tell the owner",
  "rpc:info": "GetProviderInfo never touches the vendor",
  "rpc:describe": "Describe has no side effects and tells what drifted",
  "rpc:list": "List pages through all that is stamped",
  "rpc:release": "Release takes the stamp off and leaves the instance",
  "rpc:watch-health": "a snapshot first, then changes, and a heartbeat at least each 2 s",
  "rpc:operations": "health and reflection stand beside the service",
} as const;

export const rules = { ...errorRows, ...adapterRules, ...messageRules } as const;
export type RuleId = keyof typeof rules;
