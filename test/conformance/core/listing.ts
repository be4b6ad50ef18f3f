/** List, page by page, and the instances that list cases share. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ListResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "./bench.ts";
import { expect, unmet } from "./case.ts";
import type { SuiteTarget } from "./parameters.ts";
import type { Subject } from "./subject.ts";
import { describeReply } from "./wire-client.ts";
import type { Reply } from "./wire-client.ts";

const pagesMax = 1_000;
const deadlineMs = 30_000;

export interface ListFields {
  readonly target?: SuiteTarget;
  /** Absent: of all owners. */
  readonly ownerCluster?: string;
  readonly pageSize?: number;
  readonly pageToken?: string;
}

export async function listPage(bench: Bench, fields: ListFields): Promise<Reply<ListResponse>> {
  const request = { target: bench.parameters.target, ...fields };
  return await bench.client.call(ProviderAPI.method.list, request, { deadlineMs });
}

/**
 * All pages. Each keeps to page_size and names the realm.
 * @param between called after each page but the last
 */
export async function listAll(
  bench: Bench,
  fields: ListFields,
  between: (page: ListResponse) => Promise<void> = async () => undefined,
): Promise<readonly Instance[]> {
  const { pageSize = 0 } = fields;
  const found: Instance[] = [];
  let pageToken = "";
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const reply = await listPage(bench, { ...fields, pageToken });
    if (reply.kind === "failure") return unmet("a page of the list", describeReply(reply));
    const { instances, nextPageToken, realm } = reply.answer;
    expect(realm !== "", "ListResponse.realm", () => "it is empty");
    const countMax = pageSize === 0 ? 1_000 : Math.min(pageSize, 1_000);
    const isWithin = instances.length <= countMax;
    expect(isWithin, `at most ${countMax} in a page`, () => `${instances.length}`);
    found.push(...instances);
    if (nextPageToken === "") return found;
    expect(nextPageToken !== pageToken, "another token with each page", () => "the same again");
    pageToken = nextPageToken;
    await between(reply.answer);
  }
  return unmet(`an end of the list within ${pagesMax} pages`, "there was none");
}

/** Just these, each once. */
export function expectListed(found: readonly Instance[], subjects: readonly Subject[]): void {
  const stamps = found.map(({ stamp }) => stamp).sort();
  const expected = subjects.map(({ stamp }) => stamp).sort();
  const isSame =
    stamps.length === expected.length && stamps.every((one, at) => one === expected[at]);
  const came = (): string => {
    const missing = expected.filter((stamp) => !stamps.includes(stamp));
    const strange = stamps.filter((stamp) => !expected.includes(stamp));
    const twice = stamps.filter((stamp, at) => stamps.indexOf(stamp) !== at);
    return `missing ${words(missing)}; strange ${words(strange)}; more than once ${words(twice)}`;
  };
  expect(isSame, `${expected.length} instances, each once`, came);
}

function words(stamps: readonly string[]): string {
  return stamps.length === 0 ? "none" : [...new Set(stamps)].join(", ");
}

/** Five instances of an owner that has no others. */
export interface Listed {
  readonly cluster: string;
  readonly subjects: readonly Subject[];
}

const known = new WeakMap<Bench, Promise<Listed>>();
const count = 5;

export async function fiveListed(bench: Bench): Promise<Listed> {
  const listed = known.get(bench) ?? makeFive(bench);
  known.set(bench, listed);
  return await listed;
}

async function makeFive(bench: Bench): Promise<Listed> {
  const cluster = `${bench.cluster}-list`;
  const subjects = Array.from({ length: count }, (_, at) =>
    bench.subject(`listed-${at}`, { owner: { cluster, uid: `uid-listed-${at}` } }),
  );
  for (const subject of subjects) await subject.converge();
  return { cluster, subjects };
}
