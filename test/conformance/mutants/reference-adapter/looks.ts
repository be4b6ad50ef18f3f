/** Describe and List: reads alone. */
import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  DescribeResponseSchema,
  ListResponseSchema,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DescribeRequest,
  DescribeResponse,
  ListRequest,
  ListResponse,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { notFound, questionOf, requireCapability } from "./call.ts";
import { differences } from "./differences.ts";
import { Failure } from "./failure.ts";
import { locate } from "./locate.ts";
import { checkInstance, checkList, checkTarget } from "./request-checks.ts";
import { tagsOf } from "./stamp.ts";
import { VendorApi } from "./vendor-api.ts";
import { instanceOf } from "./vendor-record.ts";
import type { World } from "./world.ts";

const pageSizeMax = 1_000;
const pageSizeDefault = 100;

export async function describe(
  world: World,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<DescribeResponse> {
  const { mutations } = world;
  checkInstance(request, mutations);
  const question = questionOf(world, request, signal);
  const { api, stamp } = question;
  const { found } = await locate(question);
  if (found === undefined) {
    if (!mutations.has("describe-creates")) throw notFound(question);
    await api.create({ name: "", parameters: {}, limits: {}, tags: tagsOf(stamp) });
    throw notFound(question);
  }
  if (mutations.has("describe-writes") && found.stamp?.cluster === stamp.cluster) {
    await api.update(found.id, { tags: tagsOf(stamp), parameters: request.spec?.parameters ?? {} });
  }
  const drift = request.spec === undefined ? [] : differences(request.spec, found, mutations);
  const shown = mutations.has("answers-the-asker") ? { ...found, stamp } : found;
  const instance = instanceOf(world, shown, { realm: api.place.realm, drift });
  return create(DescribeResponseSchema, { instance });
}

export async function list(
  world: World,
  request: ListRequest,
  signal: AbortSignal,
): Promise<ListResponse> {
  const { mutations, capabilities } = world;
  if (!capabilities.includes("LIST_BY_OWNER") && mutations.has("empty-list-undeclared")) {
    return create(ListResponseSchema, {});
  }
  const target = checkTarget(request.target);
  checkList(request);
  requireCapability(world, "LIST_BY_OWNER");
  const { ownerCluster } = request;
  const place = world.accounts.placeOf(target);
  const isUnbound = mutations.has("takes-tokens-of-other-questions");
  const question = isUnbound ? "" : JSON.stringify([place.realm, ownerCluster ?? null]);
  const after = placeIn(request.pageToken, question, mutations.has("unchecked-tokens"));
  const records = (await new VendorApi(world, place, signal).scan())
    .filter((record) => mutations.has("lists-strangers") || record.stamp !== undefined)
    .filter(({ stamp }) => isOf(stamp?.cluster, ownerCluster, world))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const isCounting = mutations.has("tokens-count");
  const rest = isCounting ? records.slice(Number(after)) : records.filter(({ id }) => id > after);
  if (request.pageSize > pageSizeMax && mutations.has("refuses-large-pages")) {
    throw new Failure("INVALID_FIELD", "too large", { fields: ["page_size"] });
  }
  const pageSize = Math.min(
    request.pageSize === 0 ? pageSizeDefault : request.pageSize,
    pageSizeMax,
  );
  const page = rest.slice(0, pageSize);
  const next = rest[page.length - (mutations.has("skips-one-between-pages") ? 0 : 1)];
  const mark = isCounting ? `${Number(after) + page.length}` : (next?.id ?? "");
  const { realm } = place;
  return create(ListResponseSchema, {
    instances: page.map((record) => instanceOf(world, record, { realm, drift: [] })),
    nextPageToken: rest.length > page.length ? tokenOf(mark, question) : "",
    realm,
  });
}

function isOf(cluster: string | undefined, wanted: string | undefined, world: World): boolean {
  return wanted === undefined || cluster === wanted || world.mutations.has("lists-all-owners");
}

/** The last id that was shown, bound to the question by a checksum. */
function tokenOf(after: string, question: string): string {
  const text = Buffer.from(after).toString("base64url");
  return `${text}.${checksum(after, question)}`;
}

function placeIn(token: string, question: string, isUnchecked: boolean): string {
  if (token === "") return "";
  const after = Buffer.from(token.split(".")[0] ?? "", "base64url").toString("utf8");
  if (isUnchecked || token === tokenOf(after, question)) return after;
  throw new Failure("INVALID_FIELD", "page_token is none of this list's", {
    fields: ["page_token"],
  });
}

function checksum(after: string, question: string): string {
  return createHash("sha256")
    .update(JSON.stringify([after, question]))
    .digest("hex")
    .slice(0, 16);
}
