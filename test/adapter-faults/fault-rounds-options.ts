/** How often the races of this folder are run: enough for every day, or as often as somebody asks. */

export interface FaultRounds {
  /** Of calls on one key. */
  readonly rounds: number;
  /** Of calls on two hundred keys. */
  readonly wideRounds: number;
}

const roundsMax = 10_000;

/** DHP_FAULT_ROUNDS and DHP_FAULT_WIDE_ROUNDS; throws on what is no whole number from 1 to 10,000. */
export function readFaultRounds(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): FaultRounds {
  return {
    rounds: count(environment, "DHP_FAULT_ROUNDS", 50),
    wideRounds: count(environment, "DHP_FAULT_WIDE_ROUNDS", 2),
  };
}

function count(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
  absent: number,
): number {
  const text = environment[name];
  if (text === undefined) return absent;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= roundsMax) return value;
  throw new Error(`${name}: want a whole number from 1 to ${roundsMax}, not "${text}"`);
}
