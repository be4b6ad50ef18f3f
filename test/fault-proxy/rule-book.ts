/** Rules at work: which fault befalls which request, and which have been used up. */
import type { Fault, FaultRule, RequestMatch } from "./fault-rule.ts";

/** What of a request rules look at. */
export interface RuledRequest {
  readonly method: string;
  readonly path: string;
  /** Without "?". */
  readonly query: string;
  readonly isWatch: boolean;
}

interface StandingRule {
  readonly rule: FaultRule;
  readonly isMeant: (request: RuledRequest) => boolean;
  matchedCount: number;
  befallenCount: number;
}

/** These act on what is answered bit by bit rather than once on a request. */
const lineFaults: readonly Fault["kind"][] = ["hold-events", "drop-bookmarks", "rewrite"];

export class RuleBook {
  #standing: readonly StandingRule[] = [];

  /** In place of all earlier ones; counts begin anew. @throws SyntaxError for a bad pattern */
  set(rules: readonly FaultRule[]): void {
    this.#standing = rules.map((rule) => ({
      rule,
      isMeant: compile(rule.match),
      matchedCount: 0,
      befallenCount: 0,
    }));
  }

  /** The faults of one more request, in the order of the rules. Call it once a request. */
  befall(request: RuledRequest): readonly Fault[] {
    const faults: Fault[] = [];
    for (const standing of this.#standing) {
      const { rule } = standing;
      if (lineFaults.includes(rule.fault.kind) || !standing.isMeant(request)) continue;
      standing.matchedCount += 1;
      const { nth = standing.matchedCount, from = 1 } = rule.match;
      if (standing.matchedCount !== nth || standing.matchedCount < from) continue;
      if (standing.befallenCount >= (rule.times ?? Number.POSITIVE_INFINITY)) continue;
      standing.befallenCount += 1;
      faults.push(rule.fault);
    }
    return faults;
  }

  /** The faults of an answer's parts as the rules stand now; counts nothing. */
  lineFaultsOf(request: RuledRequest): readonly Fault[] {
    return this.#standing
      .filter(({ rule, isMeant }) => lineFaults.includes(rule.fault.kind) && isMeant(request))
      .map(({ rule }) => rule.fault);
  }

  /** How many requests the rules have befallen so far, in the order of the rules. */
  get befallenCounts(): readonly number[] {
    return this.#standing.map(({ befallenCount }) => befallenCount);
  }
}

function compile(match: RequestMatch): (request: RuledRequest) => boolean {
  const path = match.path === undefined ? undefined : new RegExp(match.path);
  const query = match.query === undefined ? undefined : new RegExp(match.query);
  return (request) =>
    (match.methods?.includes(request.method) ?? true) &&
    (path?.test(request.path) ?? true) &&
    (query?.test(request.query) ?? true) &&
    (match.isWatch ?? request.isWatch) === request.isWatch;
}
