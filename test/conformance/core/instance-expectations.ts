/** What holds for each instance of an answer. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AvailabilitySchema,
  BillingSchema,
  StateSchema,
} from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { expect } from "./case.ts";
import { expectOurs } from "./expectations.ts";
import type { Subject } from "./subject.ts";

/** Clocks of the suite and of the vendor may differ by so much. */
const clockSkewMsMax = 300_000;

/** Whole, of the closed lists, and the subject's own. */
export function expectInstance(instance: Instance, subject: Subject): void {
  expectOurs(instance, subject);
  const { owner, state, health, createdAt, observed } = instance;
  for (const name of ["cluster", "uid"] as const) {
    const have = owner?.[name] ?? "";
    const isRight = have === "" || have === subject.owner[name];
    expect(isRight, `owner.${name} ${subject.owner[name]}, or empty`, () => have);
  }
  expect(state !== 0 && state in StateSchema.value, "a state of the list", () => `${state}`);
  expect(observed !== undefined, "the observed spec", () => "it is absent");
  const availability = health?.availability ?? 0;
  const isKnown = availability !== 0 && availability in AvailabilitySchema.value;
  expect(isKnown, "an availability of the list", () => `${availability}`);
  const billing = health?.billing ?? 0;
  expect(billing in BillingSchema.value, "a billing of the list", () => `${billing}`);
  expect(health?.observedAt !== undefined, "health.observed_at", () => "it is absent");
  const latestMs = Date.now() + clockSkewMsMax;
  for (const [name, instant] of [
    ["health.observed_at", health?.observedAt],
    ["created_at", createdAt],
  ] as const) {
    const ms = instant === undefined ? 0 : timestampMs(instant);
    expect(ms <= latestMs, `${name} not in the future`, () => new Date(ms).toISOString());
  }
}

/** What the vendor shows of the parameters is as wanted; what it does not show is not compared. */
export function expectParameters(
  { observed }: Instance,
  wanted: Readonly<Record<string, string>>,
): void {
  for (const [name, want] of Object.entries(wanted)) {
    const have = observed?.parameters[name];
    const isRight = have === undefined || have === want;
    expect(isRight, `parameters.${name} to be ${JSON.stringify(want)}`, () => `${have}`);
  }
}

/** Stamp and owner are the subject's, whoever asked. */
export function expectOwnedBy(instance: Instance, { stamp, owner }: Subject): void {
  expect(instance.stamp === stamp, `stamp ${stamp}`, () => instance.stamp);
  for (const name of ["cluster", "uid"] as const) {
    const have = instance.owner?.[name] ?? "";
    expect(have === "" || have === owner[name], `owner.${name} ${owner[name]}`, () => have);
  }
}
