/**
 * Peers of different ages. What one of them does not know is absent to the other, and absent is not
 * zero: an adapter that does not tell a limit has not said that it is 0.
 */
import { createServer as createHttp2Server } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Message } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  connectNodeAdapter,
  createGrpcTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";

import { MutationOutcomeSchema } from "../../proto/gen/dhp/provider/v1/errors_pb.ts";
import {
  HealthSchema,
  InstanceSchema,
  State,
} from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance, InstanceSpec, Usage } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import {
  Change,
  EnsureRequestSchema,
  EnsureResponseSchema,
  GetProviderInfoResponseSchema,
  ListResponseSchema,
  ProviderAPI,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { startRaw } from "../faults/rubbish-servers.ts";
import { olderProviderApi, olderRpc } from "./older-contract.ts";
import { answerIn, failed, failureIn, named, wished, wireRule } from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";

/** "absent", or the value. */
function told(value: unknown): unknown {
  return value === undefined ? "absent" : value;
}

function specTold(spec: InstanceSpec | undefined): readonly unknown[] {
  const { maxConcurrency, dailyCalls, monthlyCredits } = spec?.quota ?? {};
  return [spec?.displayName, maxConcurrency, dailyCalls, monthlyCredits].map(told);
}

function usageTold(usage: Usage | undefined): readonly unknown[] {
  const { calls, concurrency, credits } = usage ?? {};
  const numbers = [calls?.used, calls?.limit, concurrency?.used, concurrency?.limit];
  return [...numbers, credits?.remaining, credits?.limit].map(told);
}

const zeroQuota = { maxConcurrency: 0n, dailyCalls: 0n, monthlyCredits: 0n };
const absent = "absent";

wireRule(
  "absent is not zero in what is asked",
  {
    both: [
      [absent, absent, absent, absent],
      ["", 0n, 0n, 0n],
      [absent, ""],
      [absent, 0],
    ],
  },
  async (run) => {
    const seen: unknown[] = [];
    const listed: unknown[] = [];
    const versions: unknown[] = [];
    const { port } = await run.serve({
      ensure: ({ spec }) => {
        seen.push(specTold(spec));
        return Promise.resolve(create(EnsureResponseSchema));
      },
      list: ({ ownerCluster }) => {
        listed.push(told(ownerCluster));
        return Promise.resolve(create(ListResponseSchema));
      },
      getProviderInfo: ({ contractVersion }) => {
        versions.push(told(contractVersion));
        return Promise.resolve(create(GetProviderInfoResponseSchema));
      },
    });
    const end = run.connect(port);
    await end.ensure({ spec: { quota: {} } });
    await end.ensure({ spec: { displayName: "", quota: zeroQuota } });
    await end.list({});
    await end.list({ ownerCluster: "" });
    await end.getProviderInfo({});
    await end.getProviderInfo({ contractVersion: 0 });
    return [...seen, listed, versions];
  },
);

wireRule(
  "absent is not zero in what is answered",
  {
    both: [
      [absent, absent, absent, absent, absent, absent, [absent, absent], absent, absent],
      [0n, 0n, 0n, 0n, 0n, 0n, ["", ""], 0, 0],
    ],
  },
  async (run) => {
    const zero = {
      usage: {
        calls: { used: 0n, limit: 0n },
        concurrency: { used: 0n, limit: 0n },
        credits: { remaining: 0n, limit: 0n },
      },
      drift: [{ field: "displayName", want: "", have: "" }],
    };
    const none = {
      usage: { calls: {}, concurrency: {}, credits: {} },
      drift: [{ field: "displayName" }],
    };
    const { port } = await run.serve({
      ensure: ({ specHash }) => {
        const instance = specHash === "zero" ? zero : none;
        return Promise.resolve(create(EnsureResponseSchema, { instance }));
      },
      getProviderInfo: ({ contractVersion }) => {
        const limits = contractVersion === 1 ? { nameBytesMax: 0, callsPerSecond: 0 } : {};
        return Promise.resolve(create(GetProviderInfoResponseSchema, { limits }));
      },
    });
    const end = run.connect(port);
    const heard: unknown[] = [];
    for (const [specHash, contractVersion] of [
      ["none", 2],
      ["zero", 1],
    ] as const) {
      const { instance } = answerIn(await end.ensure({ specHash }));
      const { limits } = answerIn(await end.getProviderInfo({ contractVersion }));
      const [drift] = instance?.drift ?? [];
      const info = [limits?.nameBytesMax, limits?.callsPerSecond].map(told);
      heard.push([...usageTold(instance?.usage), [drift?.want, drift?.have].map(told), ...info]);
    }
    return heard;
  },
);

wireRule(
  "absent is not zero to the vendor: a name that is not asked for stays, an empty one is set",
  { both: [Change.CREATED, Change.NONE, "evening", Change.UPDATED, ""] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    const { spec, ...wish } = wished();
    const change = async (own: object): Promise<Change> =>
      answerIn(await end.ensure({ ...wish, spec: { ...spec, ...own } })).change;
    const nameNow = (): unknown => [...vendor.things.values()][0]?.name;
    const created = await change({ displayName: "evening" });
    const untouched = await change({});
    const kept = nameNow();
    return [created, untouched, kept, await change({ displayName: "" }), nameNow()];
  },
);

/** Fields of a build to come: a number, a text and a message that nobody knows today. */
function withUnknownFields<M extends Message>(message: M): M {
  message.$unknown = [
    { no: 1_001, wireType: WireType.Varint, data: new Uint8Array([7]) },
    { no: 1_002, wireType: WireType.LengthDelimited, data: new Uint8Array([2, 104, 105]) },
  ];
  return message;
}

/** Enum values of a build to come, which the types of this one do not have. */
function numbered<M extends Message>(
  message: M,
  fields: Readonly<Record<string, number | readonly number[]>>,
): M {
  for (const [name, value] of Object.entries(fields)) Reflect.set(message, name, value);
  return message;
}

wireRule(
  "a newer controller's fields disturb no adapter",
  { both: [Change.CREATED, 1] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    const request = withUnknownFields(create(EnsureRequestSchema, wished()));
    for (const part of [request.spec, request.owner, request.target, request.notAfter]) {
      if (part !== undefined) withUnknownFields(part);
    }
    return [answerIn(await end.ensure(request)).change, vendor.things.size];
  },
);

wireRule(
  "a newer adapter's fields and enum values disturb no controller, and keep their numbers",
  { both: ["id", 99, 98, 97, 96, 95, 94, [2, 93], 2] },
  async (run) => {
    const instance = withUnknownFields(
      create(InstanceSchema, {
        providerId: "id",
        health: numbered(create(HealthSchema), { availability: 97, billing: 96 }),
      }),
    );
    const { port } = await run.serve({
      ensure: async () => {
        numbered(instance, { state: 98 });
        return numbered(create(EnsureResponseSchema, { instance }), { change: 99 });
      },
      delete: async () => numbered(create(ProviderAPI.method.delete.output), { state: 95 }),
      getProviderInfo: async () =>
        numbered(create(GetProviderInfoResponseSchema), { stampPlace: 94, capabilities: [2, 93] }),
    });
    const end = run.connect(port);
    const answer = answerIn(await end.ensure(named));
    const heard = answer.instance;
    const info = answerIn(await end.getProviderInfo({}));
    const removal = answerIn(await end.delete(named));
    return [
      heard?.providerId,
      answer.change,
      heard?.state,
      heard?.health?.availability,
      heard?.health?.billing,
      removal.state,
      info.stampPlace,
      info.capabilities,
      heard?.$unknown?.length,
    ];
  },
);

/** What an adapter of an older build, of another library, makes of a request; and its answer. */
const notYet = [
  "EnsureRequest.validate_only",
  "EnsureRequest.adopt",
  "InstanceSpec.quota",
  "Instance.usage",
  "Instance.spec_hash",
  "Health.rate_limited",
  "Drift.have",
  "State.STATE_AWAITING_HUMAN",
];

function olderAdapter(): Parameters<typeof startRaw>[0] {
  const ensure = olderRpc(olderProviderApi(notYet), "Ensure");
  const handler = connectNodeAdapter({
    connect: false,
    grpcWeb: false,
    routes: ({ rpc }) => {
      rpc(ensure, (request) => {
        // By its own descriptors: what they do not have is not in the answer.
        const { spec } = fromBinary(EnsureRequestSchema, toBinary(ensure.input, known(request)));
        const observed = spec === undefined ? {} : { observed: spec };
        const instance = { providerId: "made", state: State.READY, ...observed };
        const answer = create(EnsureResponseSchema, { instance, change: Change.CREATED });
        return fromBinary(ensure.output, toBinary(EnsureResponseSchema, answer));
      });
    },
  });
  return createHttp2Server({}, handler);
}

/** Without what the reader did not know. */
function known<Message extends { $unknown?: unknown }>(message: Message): Message {
  delete message.$unknown;
  for (const part of Object.values(message)) {
    if (typeof part === "object" && part !== null) known(part);
  }
  return message;
}

wireRule(
  "an older adapter takes a newer request, and what it does not tell is absent, not zero",
  { both: ["made", Change.CREATED, "evening", absent, Array(6).fill(absent)] },
  async (run) => {
    const raw = await startRaw(olderAdapter());
    run.closeAtEnd(() => raw.stop());
    const spec = { displayName: "evening", quota: zeroQuota };
    const wish = { ...wished(), spec, adopt: { providerId: "x" } };
    const { change, instance } = answerIn(await run.connect(raw.port).ensure(wish));
    const { displayName, quota } = instance?.observed ?? {};
    return [instance?.providerId, change, displayName, told(quota), usageTold(instance?.usage)];
  },
);

/** Asks as a controller of an older build; its library is connect-node whatever the run's. */
async function olderController(run: WireRun, port: number): Promise<Instance | undefined> {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  run.closeAtEnd(() => sessionManager.abort());
  const transport = createGrpcTransport({ baseUrl, sessionManager });
  const ensure = olderRpc(olderProviderApi(notYet), "Ensure");
  const request = fromBinary(
    ensure.input,
    toBinary(EnsureRequestSchema, create(EnsureRequestSchema, wished())),
  );
  const { message } = await transport.unary(ensure, undefined, 20_000, undefined, request);
  return fromBinary(EnsureResponseSchema, toBinary(ensure.output, message)).instance;
}

wireRule(
  "an older controller's instance is the newer one's too: neither undoes what the other asked",
  { both: ["t1", Change.NONE, 1] },
  async (run) => {
    const { end, port, vendor } = await run.adapter();
    const made = await olderController(run, port);
    const { change } = answerIn(await end.ensure(wished()));
    await olderController(run, port);
    const posts = vendor.requests.filter((request) => !request.startsWith("GET"));
    return [made?.providerId, change, posts.length];
  },
);

/** An adapter of another library whose errors have words that this build does not know. */
function newerErrors(): Parameters<typeof startRaw>[0] {
  const handler = connectNodeAdapter({
    connect: false,
    grpcWeb: false,
    routes: ({ rpc }) => {
      rpc(ProviderAPI.method.ensure, () => {
        throw new ConnectError("a reason to come", Code.Aborted, undefined, [
          { desc: ErrorInfoSchema, value: { reason: "TO_COME", domain: "dhp.example.com" } },
          { desc: MutationOutcomeSchema, value: { outcome: 99, providerId: "id" } },
        ]);
      });
      rpc(ProviderAPI.method.delete, () => {
        throw new ConnectError("without a word on the outcome", Code.Aborted, undefined, [
          { desc: ErrorInfoSchema, value: { reason: "BUSY", domain: "dhp.example.com" } },
        ]);
      });
    },
  });
  return createHttp2Server({}, handler);
}

wireRule(
  "a reason and an outcome to come are no reason and UNKNOWN; an outcome that is not told is none",
  {
    "grpc-js": [
      failed("ABORTED", { outcome: "UNKNOWN", providerId: "id" }),
      failed("ABORTED", { message: "without a word on the outcome", reason: "BUSY" }),
    ],
    "connect-node": [
      failed("ABORTED", {
        message: "a reason to come",
        reason: "TO_COME",
        outcome: "99",
        providerId: "id",
      }),
      failed("ABORTED", { message: "without a word on the outcome", reason: "BUSY" }),
    ],
    because: "our client answers in the words of its own contract; a stranger's shows what came",
  },
  async (run) => {
    const raw = await startRaw(newerErrors());
    run.closeAtEnd(() => raw.stop());
    const end = run.connect(raw.port);
    return [failureIn(await end.ensure(named)), failureIn(await end.delete(named))];
  },
);
