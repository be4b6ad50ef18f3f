/** GetProviderInfo: who the adapter is, said completely and always the same. */
import { toBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { Ajv2020 } from "ajv/dist/2020.js";
import {
  Capability,
  CapabilitySchema,
  GetProviderInfoResponseSchema,
  ProviderAPI,
  StampPlace,
  StampPlaceSchema,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { GetProviderInfoResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { describeReply } from "../core/wire-client.ts";

const dayMs = 86_400_000;

async function ask(bench: Bench, contractVersion?: number): Promise<GetProviderInfoResponse> {
  const request = contractVersion === undefined ? {} : { contractVersion };
  const reply = await bench.client.call(ProviderAPI.method.getProviderInfo, request);
  if (reply.kind === "answer") return reply.answer;
  return unmet(
    `an answer to contract_version ${contractVersion ?? "absent"}`,
    describeReply(reply),
  );
}

function expectDuration(name: string, value: Duration | undefined, minMs: number): void {
  if (value === undefined) unmet(`${name} to be set`, "it is absent");
  const ms = durationMs(value);
  expect(ms >= minMs && ms <= dayMs, `${name} within ${minMs} ms and a day`, () => `${ms} ms`);
}

export const infoCases: readonly ConformanceCase[] = [
  {
    name: "info/name-is-a-dns-label",
    promise: "the adapter's name is a DNS label",
    checks: ["rpc:info"],
    needs: [],
    fix: "answer a name of at most 63 lower-case letters, digits and inner hyphens",
    run: async ({ info: { name } }) => {
      const isLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name);
      expect(isLabel, "a DNS label as name", () => JSON.stringify(name));
    },
  },
  {
    name: "info/serves-this-contract-version",
    promise: "contract_version_min to contract_version_max is a range that holds version 1",
    checks: ["rpc:info", "rule:versions"],
    needs: [],
    fix: "set both to 1 as long as this file's version is the only one you serve",
    run: async ({ info: { contractVersionMin: min, contractVersionMax: max } }) => {
      expect(min >= 1 && min <= 1 && max >= 1, "a range that holds 1", () => `${min} to ${max}`);
    },
  },
  {
    name: "info/capabilities-are-of-the-list",
    promise: "each capability is one of the closed list, named once",
    checks: ["rpc:info", "list:capability"],
    needs: [],
    fix: "answer values of enum Capability; what is not there does not exist",
    run: async ({ info: { capabilities } }) => {
      for (const one of capabilities) {
        const isKnown = one !== Capability.UNSPECIFIED && one in CapabilitySchema.value;
        expect(isKnown, "capabilities of the closed list", () => `there is ${one}`);
      }
      const isOnce = new Set(capabilities).size === capabilities.length;
      expect(isOnce, "each capability once", () => capabilities.join(", "));
    },
  },
  {
    name: "info/says-where-the-stamp-is",
    promise: "stamp_place is of its list, and visibility_lag says how late reads may be",
    checks: ["rpc:info", "list:stamp"],
    needs: [],
    fix: "set stamp_place, and visibility_lag also where it is zero",
    run: async ({ info: { stampPlace, visibilityLag } }) => {
      const isKnown = stampPlace !== StampPlace.UNSPECIFIED && stampPlace in StampPlaceSchema.value;
      expect(isKnown, "a stamp_place of the list", () => `${stampPlace}`);
      expectDuration("visibility_lag", visibilityLag, 0);
    },
  },
  {
    name: "info/schema-takes-the-parameters",
    promise:
      "parameter_schema_json is a JSON Schema (2020-12) of an object that takes `parameters`",
    checks: ["rpc:info"],
    needs: [],
    fix: "answer a sound schema of type object whose values are strings",
    run: async ({ info, parameters: { parameters, changed } }) => {
      const schema: unknown = parsed(info.parameterSchemaJson);
      const isObject = typeof schema === "object" && schema !== null && !Array.isArray(schema);
      if (!isObject) unmet("an object as schema", info.parameterSchemaJson.slice(0, 200));
      const validate = compiled(schema);
      const type = "type" in schema ? schema.type : undefined;
      expect(type === "object", 'a schema of type "object"', () => `type ${JSON.stringify(type)}`);
      for (const values of [parameters, { ...parameters, ...changed }]) {
        const came = (): string => JSON.stringify(validate.errors).slice(0, 500);
        expect(validate(values) === true, `a schema that takes ${JSON.stringify(values)}`, came);
      }
    },
  },
  {
    name: "info/regions-hold-the-target",
    promise: "regions is empty, or lists the regions that work",
    checks: ["rpc:info"],
    needs: [],
    fix: "list each region that a target may name, or none where any will do",
    run: async ({ info: { regions }, parameters: { target } }) => {
      const isListed = regions.length === 0 || regions.includes(target.region);
      expect(isListed, `"${target.region}" among the regions`, () => regions.join(", "));
    },
  },
  {
    name: "info/limits-are-sane",
    promise: "the numbers that callers wait by are there and can be true",
    checks: ["rpc:info"],
    needs: [],
    fix: "set mutation_deadline and clock_skew_allowance, and sweep_interval with WATCH_HEALTH",
    run: async (bench) => {
      const { limits } = bench.info;
      if (limits === undefined) unmet("limits", "they are absent");
      expectDuration("limits.mutation_deadline", limits.mutationDeadline, 1);
      expectDuration("limits.clock_skew_allowance", limits.clockSkewAllowance, 0);
      if (bench.hasCapability("WATCH_HEALTH")) {
        expectDuration("limits.sweep_interval", limits.sweepInterval, 1);
      }
      const { nameBytesMax: bytes, callsPerSecond: rate } = limits;
      expect(
        bytes === undefined || bytes > 0,
        "name_bytes_max above 0 or absent",
        () => `${bytes}`,
      );
      expect(rate === undefined || rate > 0, "calls_per_second above 0 or absent", () => `${rate}`);
    },
  },
  {
    name: "info/is-constant",
    promise: "the answer is the same each time",
    checks: ["rpc:info"],
    needs: [],
    fix: "answer constants; what changes while the process lives belongs elsewhere",
    run: async (bench) => {
      const bytes = (info: GetProviderInfoResponse): Buffer =>
        Buffer.from(toBinary(GetProviderInfoResponseSchema, info));
      for (const answer of [await ask(bench, 1), await ask(bench, 1)]) {
        expect(bytes(answer).equals(bytes(bench.info)), "the first answer again", () => "another");
      }
    },
  },
  {
    name: "info/answers-every-contract-version",
    promise: "callers of an older or newer contract, and those that do not say, get the answer too",
    checks: ["rpc:info", "rule:versions"],
    needs: [],
    fix: "answer whatever contract_version says: the caller compares it with your range",
    run: async (bench) => {
      for (const version of [undefined, 0, 1, 2, 2_147_483_647]) {
        const { name } = await ask(bench, version);
        expect(name === bench.info.name, `the same adapter for version ${version}`, () => name);
      }
    },
  },
];

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    return unmet("parameter_schema_json to be JSON", String(cause));
  }
}

function compiled(schema: object): ReturnType<Ajv2020["compile"]> {
  try {
    // Not strict: unknown keywords are allowed by the standard.
    return new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
  } catch (cause) {
    return unmet("a sound JSON Schema", String(cause));
  }
}
