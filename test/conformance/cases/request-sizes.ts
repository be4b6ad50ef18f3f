/** Sizes: what is as long as the contract allows is taken, and one more is refused. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { expectOurs, refused } from "../core/expectations.ts";
import { send } from "../core/request-fields.ts";
import { shared } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";

/** Bytes, unless named otherwise; as the contract's comments say. */
const max = {
  key: 382,
  cluster: 253,
  uid: 128,
  endpoint: 2_048,
  region: 63,
  account: 253,
  specHash: 128,
  displayNameCharacters: 256,
  parameters: 64,
  parameterName: 253,
  parameterValue: 16_384,
  recorded: 1_024,
  pageToken: 8_192,
} as const;

export const keepsDisplayName: Need = {
  kind: "trait",
  what: "a display name (displayName in the parameters file)",
  isSo: (bench) => bench.parameters.displayName,
};

/** A text of so many bytes that begins with `start`. */
function long(start: string, bytes: number): string {
  return start.padEnd(bytes, "x");
}

/** The longest display name that contract and vendor both allow. */
function longestName({ info, runId }: Bench): string {
  const charactersMax = max.displayNameCharacters;
  return long(`${runId} `, Math.min(charactersMax, info.limits?.nameBytesMax ?? charactersMax));
}

/** Cut at a character's end. */
function cutToBytes(text: string, bytesMax: number): string {
  const kept = Array.from(text);
  while (Buffer.byteLength(kept.join("")) > bytesMax) kept.pop();
  return kept.join("");
}

/** Fields of an Ensure that are one too long, and the path that has to be named. */
function tooLong(bench: Bench, { key, owner, target, spec }: Subject): readonly TooLong[] {
  const { parameters } = spec;
  const many = Array.from({ length: max.parameters + 1 }, (_, at) => [`p${at}`, "x"]);
  const [name] = Object.keys(parameters);
  const value = { ...parameters, [name ?? ""]: "x".repeat(max.parameterValue + 1) };
  const region = { ...target, region: long("", max.region + 1) };
  const account = { ...target, account: long("", max.account + 1) };
  const endpoint = { ...target, endpoint: long(`${target.endpoint}/`, max.endpoint + 1) };
  const recordedId = { providerId: long("", max.recorded + 1) };
  const displayName = long("", max.displayNameCharacters + 1);
  const nameBytesMax = bench.info.limits?.nameBytesMax ?? max.displayNameCharacters;
  return [
    { own: { instanceKey: long(key, max.key + 1) }, field: "instance_key" },
    { own: { owner: { ...owner, cluster: long("", max.cluster + 1) } }, field: "owner.cluster" },
    { own: { owner: { ...owner, uid: long("", max.uid + 1) } }, field: "owner.uid" },
    { own: { target: endpoint }, field: "endpoint" },
    { own: { target: region }, field: "region" },
    { own: { target: account }, field: "account" },
    { own: { specHash: long("", max.specHash + 1) }, field: "spec_hash" },
    { own: { recorded: recordedId }, field: "recorded.provider_id" },
    { own: { recorded: { realm: long("", max.recorded + 1) } }, field: "recorded.realm" },
    { own: { spec: { parameters, displayName } }, field: "displayName" },
    ...(nameBytesMax < max.displayNameCharacters
      ? [
          {
            own: { spec: { parameters, displayName: long("", nameBytesMax + 1) } },
            field: "displayName",
          },
        ]
      : []),
    { own: { spec: { parameters: Object.fromEntries(many) } }, field: "parameters" },
    ...(name === undefined
      ? []
      : [{ own: { spec: { parameters: value } }, field: `parameters.${name}` }]),
  ];
}

interface TooLong {
  readonly own: object;
  readonly field: string;
}

export const requestSizeCases: readonly ConformanceCase[] = [
  {
    name: "requests/one-too-long-is-refused",
    promise:
      "each text of an Ensure that is one longer than allowed is INVALID_ARGUMENT by its path",
    checks: ["rule:bounds", "error:bad-value"],
    needs: [],
    fix: "check the lengths that the comments of the .proto files name, in bytes of UTF-8",
    run: async (bench) => {
      const subject = bench.subject("too-long");
      for (const { own, field } of tooLong(bench, subject)) {
        const reply = await send({ bench, rpc: "ensure", subject }, { ...own });
        const reasons = [
          "INVALID_FIELD",
          ...(field === "endpoint" ? ["ENDPOINT_NOT_ALLOWED"] : []),
        ];
        refused(reply, { reasons, fields: [field], outcomes: ["NOT_APPLIED"] });
      }
    },
  },
  {
    name: "requests/one-too-long-is-refused-by-list",
    promise: "an owner_cluster or page_token that is one too long is INVALID_ARGUMENT",
    checks: ["rule:bounds", "error:bad-value"],
    needs: [{ kind: "capability", name: "LIST_BY_OWNER" }],
    fix: "check the lengths of List's fields too",
    run: async (bench) => {
      const ask = { bench, rpc: "list", subject: bench.subject("list-too-long") } as const;
      for (const [own, field] of [
        [{ ownerCluster: long("", max.cluster + 1) }, "owner_cluster"],
        [{ pageToken: long("", max.pageToken + 1) }, "page_token"],
      ] as const) {
        refused(await send(ask, own), { reasons: ["INVALID_FIELD"], fields: [field] });
      }
    },
  },
  {
    name: "requests/longest-is-taken",
    promise: "key, cluster, uid, hash and display name may be as long as the contract allows",
    checks: ["rule:identity", "list:stamp"],
    needs: [],
    fix: "keep the short stamp where the vendor's field is short; do not refuse what the contract allows",
    run: async (bench) => {
      const spec = {
        ...(bench.parameters.displayName ? { displayName: longestName(bench) } : {}),
        parameters: { ...bench.parameters.parameters },
      };
      const subject = bench.subject("longest", {
        key: long(`conformance-${bench.runId}/longest/`, max.key),
        owner: { cluster: long(`${bench.cluster}-`, max.cluster), uid: long("uid-", max.uid) },
        spec,
      });
      const specHash = long("hash-", max.specHash);
      const instance = await subject.converge({ specHash });
      expectOurs(instance, subject);
      const { displayName } = instance.observed ?? {};
      const isNamed = spec.displayName === undefined || displayName === spec.displayName;
      expect(isNamed, `the display name ${spec.displayName}`, () => `${displayName}`);
      const again = await subject.answered(subject.ensure({ specHash }), "the same again");
      expect(again.change === Change.NONE, "change NONE", () => changeName(again.change));
    },
  },
  {
    name: "requests/longest-recorded-values-are-read",
    promise:
      "a recorded id of 1024 bytes is a hint like others, and a realm of 1024 bytes another realm",
    checks: ["rule:bounds", "rule:identity", "error:wrong-realm"],
    needs: [],
    fix: "take an id that the vendor cannot have as one that leads nowhere, and look by key",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const recorded = { providerId: long("x", max.recorded) };
      const { instance: found } = await subject.answered(
        subject.describe({ recorded }),
        "it by key",
      );
      const isSame = found?.providerId === instance.providerId;
      expect(isSame, instance.providerId, () => found?.providerId ?? "none");
      const realm = long("realm", max.recorded);
      refused(await subject.describe({ recorded: { realm } }), { reasons: ["WRONG_REALM"] });
    },
  },
  {
    name: "requests/names-in-any-script",
    promise: "a display name in any script is kept, read back and not taken for drift",
    checks: ["rpc:describe", "list:change"],
    needs: [keepsDisplayName],
    fix: "send and read UTF-8, and count in the unit of the limit that you declare",
    run: async (bench) => {
      const text = `${bench.runId} 杭州文字转语音 «Größe» عرض 🎭 & <b> "q" 'q' \\ %41`;
      const displayName = cutToBytes(text, bench.info.limits?.nameBytesMax ?? 256);
      const spec = { displayName, parameters: { ...bench.parameters.parameters } };
      const subject = bench.subject("any-script", { spec });
      const { observed } = await subject.converge();
      expect(observed?.displayName === displayName, displayName, () => `${observed?.displayName}`);
      const again = await subject.answered(subject.ensure(), "the same again");
      expect(again.change === Change.NONE, "change NONE", () => changeName(again.change));
    },
  },
  {
    name: "requests/control-characters-are-refused",
    promise: "control characters in key, owner or display name are INVALID_ARGUMENT",
    checks: ["error:bad-value"],
    needs: [],
    fix: "refuse line breaks, NUL and their like: they would end up in tags, headers and logs",
    run: async (bench) => {
      const subject = bench.subject("control");
      const { key, owner, spec } = subject;
      for (const character of ["\n", "\0", "\u007f", "\u0085"]) {
        const mistakes = [
          { own: { instanceKey: `${key}${character}` }, field: "instance_key" },
          { own: { owner: { ...owner, cluster: `c${character}` } }, field: "owner.cluster" },
          { own: { spec: { ...spec, displayName: `n${character}` } }, field: "displayName" },
        ];
        for (const { own, field } of mistakes) {
          const reply = await send({ bench, rpc: "ensure", subject }, own);
          const outcomes = ["NOT_APPLIED"];
          refused(reply, { reasons: ["INVALID_FIELD"], fields: [field], outcomes });
        }
      }
    },
  },
];
