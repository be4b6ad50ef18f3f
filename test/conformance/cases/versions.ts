/** Older and newer callers: what is absent is not zero, and what is unknown does no harm. */
import { create } from "@bufbuild/protobuf";
import type { DescMessage, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import {
  Change,
  DescribeRequestSchema,
  EnsureRequestSchema,
  GetProviderInfoRequestSchema,
  ListRequestSchema,
  ProviderAPI,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { expectOurs } from "../core/expectations.ts";
import { fieldsOf } from "../core/request-fields.ts";
import { shared } from "../core/shared-subjects.ts";
import { describeReply } from "../core/wire-client.ts";
import type { Reply } from "../core/wire-client.ts";
import { changeName } from "../core/wire-words.ts";
import { keepsDisplayName } from "./request-sizes.ts";

const canUpdate: Need = { kind: "capability", name: "UPDATE" };
const canHoldQuota: Need = { kind: "capability", name: "QUOTA_SETTABLE" };
const quotaFields = ["maxConcurrency", "dailyCalls", "monthlyCredits"] as const;

/** Field 1999 as a text and 2000 as a number, as a newer contract may have them. */
function withUnknownFields<T extends Message>(message: T): T {
  message.$unknown = [
    { no: 1_999, wireType: WireType.LengthDelimited, data: Uint8Array.of(3, 110, 101, 119) },
    { no: 2_000, wireType: WireType.Varint, data: Uint8Array.of(7) },
  ];
  return message;
}

/** The request, with unknown fields in it and in the messages that it holds. */
function newer<Desc extends DescMessage>(
  schema: Desc,
  fields: MessageInitShape<Desc>,
): MessageShape<Desc> {
  const message = create(schema, fields);
  for (const value of Object.values(message)) {
    if (isMessage(value)) withUnknownFields(value);
  }
  return withUnknownFields(message);
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "$typeName" in value;
}

function answerOf<T>(reply: Reply<T>): T {
  if (reply.kind === "answer") return reply.answer;
  return unmet("an answer in spite of unknown fields", describeReply(reply));
}

function quotaOf({ observed }: Instance, name: (typeof quotaFields)[number]): bigint | undefined {
  return observed?.quota?.[name];
}

export const versionCases: readonly ConformanceCase[] = [
  {
    name: "versions/unknown-fields-do-no-harm",
    promise:
      "requests of a newer caller, with fields that are not known here, are answered as others",
    checks: ["rule:versions"],
    needs: [],
    fix: "ignore unknown fields as protobuf does; do not reject or compare them",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { client } = bench;
      const info = newer(GetProviderInfoRequestSchema, { contractVersion: 2 });
      answerOf(await client.call(ProviderAPI.method.getProviderInfo, info));
      const ensure = newer(EnsureRequestSchema, fieldsOf("ensure", subject));
      const ensured = answerOf(await client.call(ProviderAPI.method.ensure, ensure));
      const { change } = ensured;
      expect(change === Change.NONE, "change NONE", () => changeName(change));
      const describe = newer(DescribeRequestSchema, fieldsOf("describe", subject));
      const described = answerOf(await client.call(ProviderAPI.method.describe, describe));
      const isSame = described.instance?.providerId === instance.providerId;
      expect(isSame, instance.providerId, () => `${described.instance?.providerId}`);
      if (!bench.hasCapability("LIST_BY_OWNER")) return;
      const list = newer(ListRequestSchema, fieldsOf("list", subject));
      answerOf(await client.call(ProviderAPI.method.list, list));
    },
  },
  {
    name: "versions/oldest-request-is-enough",
    promise: "a request with the required fields alone makes the instance and finds it again",
    checks: ["rule:versions"],
    needs: [],
    fix: "ask for nothing that the contract does not call required: no hash, name, id or quota",
    run: async (bench) => {
      const subject = bench.subject("oldest", {
        spec: { parameters: bench.parameters.parameters },
      });
      const instance = await subject.converge({ specHash: "" });
      expectOurs(instance, subject);
      const { change } = await subject.answered(subject.ensure({ specHash: "" }), "OK");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
    },
  },
  {
    name: "versions/empty-name-is-not-absent",
    promise: "an empty display name is a wish of its own: written, or refused by its path",
    checks: ["rule:versions", "list:change"],
    needs: [canUpdate, keepsDisplayName],
    fix: "look whether display_name is present, not whether it is empty",
    run: async (bench) => {
      const subject = bench.subject("empty-name");
      await subject.converge();
      const spec = { ...subject.spec, displayName: "" };
      const reply = await subject.ensure({ spec });
      if (reply.kind === "failure") {
        const { reason, fields } = reply.failure;
        const isRefused = reason === "INVALID_FIELD" && fields.includes("displayName");
        expect(isRefused, "INVALID_FIELD of displayName", () => describeReply(reply));
        return;
      }
      const { change, instance } = reply.answer;
      expect(change === Change.UPDATED, "change UPDATED", () => changeName(change));
      const name = instance?.observed?.displayName ?? "";
      expect(name === "", "no display name", () => name);
    },
  },
  {
    name: "versions/absent-quota-is-not-zero",
    promise: "without a quota no limit of zero is made or shown",
    checks: ["rule:versions"],
    needs: [canHoldQuota],
    fix: "write a quota field only when it is present; show a limit only where the vendor has one",
    run: async (bench) => {
      const { instance } = await shared(bench);
      for (const name of quotaFields) {
        const value = quotaOf(instance, name);
        expect(value !== 0n, `observed quota.${name} absent or above 0`, () => `${value}`);
      }
    },
  },
  {
    name: "versions/quota-is-kept",
    promise: "a quota is written and read back, NONE when repeated, and zero is a limit of zero",
    checks: ["rule:versions", "list:capability", "list:change"],
    needs: [canHoldQuota],
    fix: "declare QUOTA_SETTABLE only where you write and read the limits at the vendor",
    run: async (bench) => {
      const subject = bench.subject("quota");
      let isHeld = false;
      await subject.converge();
      for (const name of quotaFields) {
        for (const limit of [3n, 0n]) {
          const spec = { ...subject.spec, quota: { [name]: limit } };
          const reply = await subject.ensure({ spec });
          if (reply.kind === "failure") {
            const { reason, fields } = reply.failure;
            const isRefused = reason === "INVALID_FIELD" && fields.includes(`quota.${name}`);
            expect(isRefused, `INVALID_FIELD of quota.${name}`, () => describeReply(reply));
            continue;
          }
          isHeld = true;
          const { instance } = reply.answer;
          const value = instance && quotaOf(instance, name);
          expect(value === limit, `observed quota.${name} ${limit}`, () => `${value}`);
          const { change } = await subject.answered(subject.ensure({ spec }), "OK");
          expect(change === Change.NONE, "change NONE", () => changeName(change));
        }
      }
      expect(isHeld, "one quota that is taken", () => "each is refused");
    },
  },
  {
    name: "versions/bad-quota-is-refused",
    promise: "a negative limit is INVALID_ARGUMENT by its path",
    checks: ["error:bad-value", "list:outcome"],
    needs: [],
    fix: "check the quota's fields, whether or not the vendor holds quotas",
    run: async (bench) => {
      const subject = bench.subject("bad-quota");
      for (const name of quotaFields) {
        const spec = { ...subject.spec, quota: { [name]: -1n } };
        const reply = await subject.ensure({ spec });
        const isRefused =
          reply.kind === "failure" && reply.failure.fields.includes(`quota.${name}`);
        expect(isRefused, `a refusal of quota.${name}`, () => describeReply(reply));
      }
    },
  },
];
