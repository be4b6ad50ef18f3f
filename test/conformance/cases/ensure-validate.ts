/** Ensure with validate_only: checks everything and changes nothing. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { expectParameters } from "../core/instance-expectations.ts";
import { settled } from "../core/settled.ts";
import { shared } from "../core/shared-subjects.ts";
import { changeName } from "../core/wire-words.ts";

const served: Need = { kind: "capability", name: "VALIDATE_ONLY" };
const validateOnly = true;

export const ensureValidateCases: readonly ConformanceCase[] = [
  {
    name: "ensure/validate-only-makes-nothing",
    promise: "validate_only answers OK with change NONE for a sound request, and makes nothing",
    checks: ["list:change", "list:capability"],
    needs: [served],
    fix: "with validate_only return before the create",
    run: async (bench) => {
      const subject = bench.subject("validate");
      const { change } = await subject.answered(subject.ensure({ validateOnly }), "OK");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
      await settled(bench, async () =>
        refused(await subject.describe(), { reasons: ["NOT_FOUND"] }),
      );
    },
  },
  {
    name: "ensure/validate-only-changes-nothing",
    promise: "validate_only on an instance that differs changes nothing",
    checks: ["list:change", "list:capability"],
    needs: [served, { kind: "parameter", name: "changed" }],
    fix: "with validate_only return before the update",
    run: async (bench) => {
      const { parameters, changed } = bench.parameters;
      const { subject } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...changed } };
      const { change } = await subject.answered(subject.ensure({ validateOnly, spec }), "OK");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
      const { instance } = await subject.answered(subject.describe(), "the instance");
      if (instance !== undefined) expectParameters(instance, parameters);
    },
  },
  {
    name: "ensure/validate-only-validates",
    promise: "validate_only refuses a bad parameter as a real Ensure would",
    checks: ["error:bad-value", "list:capability"],
    needs: [served, { kind: "parameter", name: "invalid" }],
    fix: "check request and parameters before you look at validate_only",
    run: async (bench) => {
      const { parameters, invalid = {} } = bench.parameters;
      const subject = bench.subject("validates");
      const spec = { ...subject.spec, parameters: { ...parameters, ...invalid } };
      refused(await subject.ensure({ validateOnly, spec }), {
        reasons: ["INVALID_FIELD"],
        outcomes: ["NOT_APPLIED"],
        fields: Object.keys(invalid).map((name) => `parameters.${name}`),
      });
    },
  },
  {
    name: "ensure/validate-only-says-immutable",
    promise: "validate_only tells of a field that cannot be changed",
    checks: ["error:immutable", "list:capability"],
    needs: [served, { kind: "parameter", name: "immutable" }],
    fix: "compare with the instance that exists, also with validate_only",
    run: async (bench) => {
      const { parameters, immutable = {} } = bench.parameters;
      const { subject } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...immutable } };
      const reasons = ["IMMUTABLE_FIELD"];
      refused(await subject.ensure({ validateOnly, spec }), {
        reasons,
        preconditions: ["IMMUTABLE"],
      });
    },
  },
  {
    name: "ensure/validate-only-without-capability",
    promise: "without VALIDATE_ONLY the request is refused (UNSUPPORTED), and makes nothing",
    checks: ["list:capability", "error:version"],
    needs: [{ kind: "no-capability", name: "VALIDATE_ONLY" }],
    fix: "refuse validate_only where you cannot serve it: never create instead",
    run: async (bench) => {
      const subject = bench.subject("cannot-validate");
      refused(await subject.ensure({ validateOnly }), { reasons: ["UNSUPPORTED"] });
      await settled(bench, async () =>
        refused(await subject.describe(), { reasons: ["NOT_FOUND"] }),
      );
    },
  },
];
