/**
 * Which class serves an object: chosen once, pinned, and chosen again only when spec names another
 * class, endpoint or region. A new class therefore moves nobody.
 */
import type { DigitalHumanProvider } from "./digital-human-provider.ts";
import type { Place } from "./placement.ts";
import type { ProviderClass } from "./provider-class.ts";

export type ClassChoice =
  | { readonly kind: "chosen"; readonly class: ProviderClass; readonly place: Place }
  | {
      readonly kind: "none";
      readonly reason: "NoClass" | "AmbiguousClass" | "NotAllowed";
      readonly message: string;
    };

export function chooseClass(
  object: DigitalHumanProvider,
  classes: readonly ProviderClass[],
): ClassChoice {
  const { spec } = object;
  const pinned = pinnedClassName(object);
  const wanted = spec.className ?? pinned;
  const choice = wanted === undefined ? chooseByHost(object, classes) : byName(wanted, classes);
  if (choice.kind === "none") return choice;
  return checkAllowed(object, choice.class);
}

/** The place an object asks for, once its class is known. */
export function placeOf(object: DigitalHumanProvider, chosen: ProviderClass): Place {
  const { endpoint, region } = object.spec;
  return { class: chosen.name, endpoint, region, account: chosen.account };
}

/** True when `pattern` ("a.example.com" or "*.example.com") covers the host. */
export function hostMatches(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase();
  if (!wanted.startsWith("*.")) return wanted === host;
  return host.endsWith(wanted.slice(1)) && host.length > wanted.length - 1;
}

/** Host of an endpoint in lower case without port; empty when there is none. */
export function hostOf(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).hostname.toLowerCase() : "";
}

/** What was chosen for this very spec, or where an instance is recorded for its endpoint and region. */
function pinnedClassName(object: DigitalHumanProvider): string | undefined {
  const { status, spec, record } = object;
  if (status.className === undefined) {
    return record.find((placement) => isAsked(placement, spec))?.class;
  }
  const isUnchanged =
    status.observedGeneration === object.generation ||
    record.some((placement) => placement.class === status.className && isAsked(placement, spec));
  return isUnchanged ? status.className : undefined;
}

function isAsked(place: Place, spec: { endpoint: string; region: string }): boolean {
  return place.endpoint === spec.endpoint && place.region === spec.region;
}

type NamedChoice = { kind: "chosen"; class: ProviderClass } | (ClassChoice & { kind: "none" });

function byName(name: string, classes: readonly ProviderClass[]): NamedChoice {
  const found = classes.find((candidate) => candidate.name === name);
  if (found !== undefined) return { kind: "chosen", class: found };
  return {
    kind: "none",
    reason: "NoClass",
    message: `class "${name}" does not exist: create it, or name another in spec.className (kubectl get dhpclass)`,
  };
}

function chooseByHost(
  object: DigitalHumanProvider,
  classes: readonly ProviderClass[],
): NamedChoice {
  const host = hostOf(object.spec.endpoint);
  const usable = classes.filter((candidate) => !candidate.isDeleting);
  const matching = usable
    .map((candidate) => ({ class: candidate, specificity: specificity(candidate, host) }))
    .filter((match) => match.specificity > 0);
  const best = Math.max(0, ...matching.map((match) => match.specificity));
  const closest = matching
    .filter((match) => match.specificity === best)
    .map((match) => match.class);
  const candidates =
    closest.length > 0 ? closest : usable.filter((candidate) => candidate.isDefault);
  const [first, ...others] = candidates;
  if (first === undefined) {
    return {
      kind: "none",
      reason: "NoClass",
      message: `no class covers host "${host}" and none is the default: name one in spec.className (kubectl get dhpclass)`,
    };
  }
  if (others.length > 0) {
    const names = candidates.map((candidate) => `"${candidate.name}"`).sort();
    const why = closest.length > 0 ? `cover host "${host}" equally` : "are marked as default";
    return {
      kind: "none",
      reason: "AmbiguousClass",
      message: `classes ${names.join(" and ")} ${why}: name one in spec.className`,
    };
  }
  return { kind: "chosen", class: first };
}

/** 0: not covered; an exact host beats each suffix, a longer suffix a shorter one. */
function specificity(candidate: ProviderClass, host: string): number {
  const fitting = candidate.endpointHosts.filter((pattern) => hostMatches(pattern, host));
  const scores = fitting.map((pattern) => (pattern.startsWith("*.") ? pattern.length : 1000));
  return Math.max(0, ...scores);
}

function checkAllowed(object: DigitalHumanProvider, chosen: ProviderClass): ClassChoice {
  const { allowedNamespaces } = chosen;
  if (allowedNamespaces !== undefined && !allowedNamespaces.includes(object.namespace)) {
    return {
      kind: "none",
      reason: "NotAllowed",
      message: `class "${chosen.name}" does not allow namespace "${object.namespace}": its owner has to add it to spec.allowedNamespaces`,
    };
  }
  const host = hostOf(object.spec.endpoint);
  const isOpen = chosen.endpointHosts.length === 0; // then the adapter's own list decides alone
  if (!isOpen && !chosen.endpointHosts.some((pattern) => hostMatches(pattern, host))) {
    return {
      kind: "none",
      reason: "NotAllowed",
      message: `class "${chosen.name}" does not cover host "${host}" (it covers ${chosen.endpointHosts.join(", ")}): correct spec.endpoint or choose another class`,
    };
  }
  return { kind: "chosen", class: chosen, place: placeOf(object, chosen) };
}
