/** How hard the tests of this folder try: enough for every day, or as hard as somebody asks. */

export interface RuntimeFaultsOptions {
  /** Objects made and removed around each change of leaders. */
  readonly leaderObjects: number;
  /** How long the API server or the network is away. */
  readonly outageMs: number;
}

/** DHP_RUNTIME_OBJECTS and DHP_RUNTIME_OUTAGE_SECONDS; throws on what is no whole number in range. */
export function readRuntimeFaults(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): RuntimeFaultsOptions {
  return {
    leaderObjects: whole(environment, "DHP_RUNTIME_OBJECTS", { absent: 60, max: 1_000 }),
    outageMs: 1_000 * whole(environment, "DHP_RUNTIME_OUTAGE_SECONDS", { absent: 15, max: 300 }),
  };
}

function whole(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
  { absent, max }: { readonly absent: number; readonly max: number },
): number {
  const text = environment[name];
  if (text === undefined) return absent;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new Error(`${name}: want a whole number from 1 to ${max}, not "${text}"`);
}
