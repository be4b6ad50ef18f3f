/** What the parent and the processes of `npm run load:adapter` tell each other. */

export interface LoadTask {
  readonly port: number;
  /** "/dhp.provider.v1.ProviderAPI/Describe" */
  readonly path: string;
  /** One for each caller at a time: one key has but one Ensure in flight. */
  readonly requestsBase64: readonly string[];
  readonly seconds: number;
}

export interface LoadResult {
  /** Of calls with status 0. */
  readonly latenciesMs: readonly number[];
  readonly seconds: number;
  /** Other statuses, and how often each came. */
  readonly failures: readonly (readonly [status: string, count: number])[];
}

/** What the echo answers, by method: "Describe", "Ensure". Protobuf in base64. */
export type EchoAnswers = Readonly<Record<string, string>>;

export interface Listening {
  readonly port: number;
}
