/** What every request has to hold, before the vendor is touched. Paths as the contract names them. */
import type {
  Adopt,
  InstanceSpec,
  Owner,
  Recorded,
  Target,
} from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { EnsureRequest } from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { quotaFields } from "./differences.ts";
import { Failure } from "./failure.ts";
import type { Mutations } from "./mutations.ts";
import { badParameters } from "./parameters.ts";
import { limits } from "./world.ts";

const keyBytesMax = 382;

interface TextRule {
  readonly max: number;
  readonly mayBeEmpty?: boolean;
}

interface InstanceRequest {
  readonly instanceKey: string;
  readonly owner?: Owner | undefined;
  readonly target?: Target | undefined;
  readonly recorded?: Recorded | undefined;
}

/** Collects what is wrong. */
class Mistakes {
  readonly #paths = new Set<string>();

  add(path: string, isWrong = true): void {
    if (isWrong) this.#paths.add(path);
  }

  text(path: string, value: string, { max, mayBeEmpty = false }: TextRule): void {
    this.add(path, value === "" && !mayBeEmpty);
    this.add(path, Buffer.byteLength(value) > max || /\p{Cc}/u.test(value));
  }

  /** Throws INVALID_FIELD with all of them, or does nothing. */
  refuse(): void {
    const fields = [...this.#paths];
    if (fields.length === 0) return;
    const message = `missing, too long or not allowed: ${fields.slice(0, 8).join(", ")}`;
    throw new Failure("INVALID_FIELD", message, {
      outcome: "NOT_APPLIED",
      fields: fields.slice(0, 8),
    });
  }
}

/** Ensure. */
export function checkEnsure(request: EnsureRequest, mutations: Mutations): void {
  const mistakes = instanceMistakes(request, mutations);
  mistakes.add("owner.uid", (request.owner?.uid ?? "") === "" && !mutations.has("needs-no-uid"));
  mistakes.text("spec_hash", request.specHash, { max: 128, mayBeEmpty: true });
  mistakes.add("spec", request.spec === undefined);
  specMistakes(request.spec, mistakes);
  adoptMistakes(request.adopt, mistakes);
  mistakes.refuse();
}

/** Describe, Delete and Release. */
export function checkInstance(
  request: InstanceRequest & { readonly spec?: InstanceSpec | undefined },
  mutations: Mutations,
): void {
  const mistakes = instanceMistakes(request, mutations);
  specMistakes(request.spec, mistakes);
  mistakes.refuse();
}

/** The target that a request has to have. */
export function checkTarget(target: Target | undefined): Target {
  const mistakes = new Mistakes();
  targetMistakes(target, mistakes);
  mistakes.refuse();
  return target ?? unreachable();
}

/** List: page_token's content is looked at where it is read. */
export function checkList(request: {
  readonly ownerCluster?: string | undefined;
  readonly pageSize: number;
  readonly pageToken: string;
}): void {
  const mistakes = new Mistakes();
  const { ownerCluster } = request;
  if (ownerCluster !== undefined) mistakes.text("owner_cluster", ownerCluster, { max: 253 });
  mistakes.add("page_size", request.pageSize < 0);
  mistakes.text("page_token", request.pageToken, { max: 8_192, mayBeEmpty: true });
  mistakes.refuse();
}

/** WatchHealth. */
export function checkWatch(ownerCluster: string, targets: readonly Target[]): void {
  const mistakes = new Mistakes();
  mistakes.text("owner_cluster", ownerCluster, { max: 253 });
  mistakes.add("targets", targets.length === 0 || targets.length > 1_000);
  for (const target of targets) targetMistakes(target, mistakes);
  mistakes.refuse();
}

function instanceMistakes(request: InstanceRequest, mutations: Mutations): Mistakes {
  const mistakes = new Mistakes();
  const { instanceKey, owner, recorded } = request;
  const own = mutations.has("takes-longer-keys") ? 1 : mutations.has("refuses-long-keys") ? -64 : 0;
  mistakes.text("instance_key", instanceKey, { max: keyBytesMax + own });
  mistakes.text("owner.cluster", owner?.cluster ?? "", { max: 253 });
  mistakes.text("owner.uid", owner?.uid ?? "", { max: 128, mayBeEmpty: true });
  const id = { max: 1_024, mayBeEmpty: true };
  mistakes.text("recorded.provider_id", recorded?.providerId ?? "", id);
  mistakes.text("recorded.realm", recorded?.realm ?? "", id);
  targetMistakes(request.target, mistakes);
  return mistakes;
}

function targetMistakes(target: Target | undefined, mistakes: Mistakes): void {
  mistakes.text("endpoint", target?.endpoint ?? "", { max: 2_048 });
  mistakes.text("region", target?.region ?? "", { max: 63, mayBeEmpty: true });
  mistakes.text("account", target?.account ?? "", { max: 253, mayBeEmpty: true });
}

function specMistakes(spec: InstanceSpec | undefined, mistakes: Mistakes): void {
  const { displayName = "", parameters = {}, quota } = spec ?? {};
  mistakes.text("displayName", displayName, { max: limits.nameBytesMax, mayBeEmpty: true });
  mistakes.add("displayName", Array.from(displayName).length > 256);
  const values = Object.entries(parameters);
  mistakes.add("parameters", values.length > 64);
  for (const [name, value] of values.slice(0, 64)) {
    mistakes.add("parameters", Buffer.byteLength(name) > 253);
    mistakes.add(`parameters.${name}`, Buffer.byteLength(value) > 16_384);
  }
  if (values.length <= 64) for (const path of badParameters(parameters)) mistakes.add(path);
  for (const name of quotaFields) mistakes.add(`quota.${name}`, (quota?.[name] ?? 0n) < 0n);
}

function adoptMistakes(adopt: Adopt | undefined, mistakes: Mistakes): void {
  if (adopt === undefined) return;
  mistakes.text("adopt.providerID", adopt.providerId, { max: 1_024 });
  const { takeOverFrom } = adopt;
  if (takeOverFrom === undefined) return;
  mistakes.text("adopt.takeOverFrom.cluster", takeOverFrom.cluster, { max: 253 });
  mistakes.text("adopt.takeOverFrom.uid", takeOverFrom.uid, { max: 128 });
}

function unreachable(): never {
  throw new Error("a target that was checked is absent");
}
