/**
 * `npm run compare:informers`: the behaviours that a controller needs of a watch, each tried with ours
 * and with client-node's makeInformer over the same scripted API server, printed as two columns. The
 * day the second column says yes throughout, client-node can take the part back.
 */
import { get } from "node:https";
import type { RequestOptions } from "node:https";
import { join } from "node:path";
import { KubeConfig, makeInformer } from "@kubernetes/client-node";
import type { KubernetesListObject, KubernetesObject } from "@kubernetes/client-node";
import { systemClock } from "../../services/process/clock.ts";
import { FakeApiServer, statusBody } from "./fake-api-server.ts";
import type { FakeCall } from "./fake-api-server.ts";
import { FakeCollection } from "./fake-collection.ts";
import { WatchFixture } from "./watch-fixture.ts";

/** A watch of either kind, over a server that does as the scenario wants. */
interface Subject {
  readonly server: FakeApiServer;
  readonly collection: FakeCollection;
  /** Events as "kind name", oldest first: kinds are added, modified, deleted. */
  readonly told: readonly string[];
  /** Version of what is cached under a name; undefined: nothing. */
  version(name: string): string | undefined;
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface Scenario {
  readonly behaviour: string;
  /** Throws when the behaviour is not there; the message says what came instead. */
  readonly run: (subject: Subject) => Promise<void>;
  /** What the handler does with an event; undefined: nothing. */
  readonly onTold?: (name: string) => void;
}

const waitMsMax = 8_000;
const pollMs = 20;
const isWatch = ({ query }: FakeCall): boolean => query.get("watch") === "true";

async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + waitMsMax;
  while (!isSo()) {
    if (Date.now() > endMs) throw new Error(`${what} did not come within ${waitMsMax} ms`);
    await systemClock.sleep(pollMs);
  }
}

function expect(isSo: boolean, came: string): void {
  if (!isSo) throw new Error(came);
}

/** Answers the next `times` calls that are meant with a status. */
function failNext(
  { collection }: Subject,
  times: number,
  answer: (call: FakeCall) => void,
  isMeant: (call: FakeCall) => boolean = () => true,
): void {
  let left = times;
  collection.fault = (call) => {
    if (left === 0 || !isMeant(call)) return false;
    left -= 1;
    answer(call);
    return true;
  };
}

const status =
  (code: number, reason: string) =>
  (call: FakeCall): void =>
    call.answer(code, statusBody(code, reason));

const scenarios: readonly Scenario[] = [
  {
    behaviour: "tells what is there, what comes, what changes and what goes",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      subject.collection.put("b");
      subject.collection.put("b", { spec: 1 });
      subject.collection.delete("a");
      await until("deleted a", () => subject.told.includes("deleted a"));
      expect(subject.told.join() === "added a,added b,modified b,deleted a", subject.told.join());
    },
  },
  {
    behaviour: "one connection for ten watches in a row",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      for (let round = 0; round < 10; round += 1) {
        await until("an open watch", () => subject.collection.watches.length > 0);
        for (const watch of subject.collection.watches) watch.end();
        subject.collection.put(`again-${round}`);
        await until("the change", () => subject.told.includes(`added again-${round}`));
      }
      const { sessionCount } = subject.server;
      expect(sessionCount <= 2, `${sessionCount} connections`);
    },
  },
  {
    behaviour: "500 at the watch's start is tried again",
    run: async (subject) => {
      failNext(subject, 2, status(500, "InternalError"), isWatch);
      await subject.start();
      subject.collection.put("a");
      await until("added a", () => subject.told.includes("added a"));
    },
  },
  {
    behaviour: "503 when listing is tried again",
    run: async (subject) => {
      subject.collection.put("a");
      failNext(subject, 2, status(503, "ServiceUnavailable"));
      await subject.start();
      await until("added a", () => subject.told.includes("added a"));
    },
  },
  {
    behaviour: "410 as HTTP status lists again, and what changed meanwhile is told",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.collection.isDelivering = false;
      subject.collection.put("b");
      subject.collection.compact();
      subject.collection.isDelivering = true;
      for (const watch of subject.collection.watches) watch.end();
      await until("added b", () => subject.told.includes("added b"));
    },
  },
  {
    behaviour: "410 as an ERROR event lists again",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.collection.isDelivering = false;
      subject.collection.put("b");
      subject.collection.isDelivering = true;
      for (const watch of subject.collection.watches) {
        watch.send("ERROR", statusBody(410, "Expired"));
        watch.end();
      }
      await until("added b", () => subject.told.includes("added b"));
    },
  },
  {
    behaviour: "deleted and made again in a gap is a delete and an add",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.collection.isDelivering = false;
      subject.collection.delete("a");
      subject.collection.put("a");
      subject.collection.compact();
      subject.collection.isDelivering = true;
      for (const watch of subject.collection.watches) watch.end();
      await until("deleted a", () => subject.told.includes("deleted a"));
      expect(subject.told.filter((one) => one === "added a").length === 2, subject.told.join());
    },
  },
  {
    behaviour: "an identical relist tells nothing",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      const before = subject.told.length;
      subject.collection.compact();
      subject.collection.resourceVersion += 1;
      for (const watch of subject.collection.watches) {
        watch.send("ERROR", statusBody(410, "Expired"));
        watch.end();
      }
      await until("another watch", () => subject.collection.watches.length > 0);
      await systemClock.sleep(300);
      expect(subject.told.length === before, subject.told.slice(before).join());
    },
  },
  {
    behaviour: "an older object never replaces a newer one",
    run: async (subject) => {
      const old = subject.collection.put("a");
      const fresh = subject.collection.put("a", { spec: 1 });
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      for (const watch of subject.collection.watches) watch.send("MODIFIED", old);
      subject.collection.put("b");
      await until("added b", () => subject.told.includes("added b"));
      const version = subject.version("a");
      expect(version === fresh.metadata.resourceVersion, `version ${version} is cached`);
    },
  },
  {
    behaviour: "large collections are read by a stream or in pages",
    run: async (subject) => {
      for (let at = 0; at < 1_200; at += 1) subject.collection.put(`o-${at}`);
      await subject.start();
      await until("all of them", () => subject.told.length >= 1_200);
      const isBounded = subject.server.calls.some(
        ({ query }) => query.has("limit") || query.has("sendInitialEvents"),
      );
      expect(isBounded, "one list without a limit");
    },
  },
  {
    behaviour: "a refused token is read again from its file",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      await subject.server.rotateToken("token-2");
      for (const watch of subject.collection.watches) watch.end();
      subject.collection.put("b");
      await until("added b", () => subject.told.includes("added b"));
    },
  },
  {
    behaviour: "a cut connection is opened again, and nothing is missed",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.server.cutConnections();
      subject.collection.put("b");
      await until("added b", () => subject.told.includes("added b"));
    },
  },
  {
    behaviour: "a black hole is noticed, and nothing is missed",
    run: async (subject) => {
      subject.collection.put("a");
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.server.blackHole();
      subject.collection.put("b");
      await until("added b", () => subject.told.includes("added b"));
    },
  },
  {
    behaviour: "Retry-After is obeyed",
    run: async (subject) => {
      subject.collection.put("a");
      failNext(subject, 1, (call) =>
        call.answer(429, statusBody(429, "TooManyRequests"), { "retry-after": "1" }),
      );
      const startMs = Date.now();
      await subject.start();
      await until("added a", () => subject.told.includes("added a"));
      const tookMs = Date.now() - startMs;
      expect(tookMs >= 900, `asked again after ${tookMs} ms`);
    },
  },
  {
    behaviour: "a handler that throws loses no later event",
    onTold: (name) => {
      if (name === "bad") throw new Error("a handler's bug");
    },
    run: async (subject) => {
      await subject.start();
      await until("an open watch", () => subject.collection.watches.length > 0);
      subject.collection.put("bad");
      subject.collection.put("good");
      await until("added good", () => subject.told.includes("added good"));
    },
  },
];

async function ours({ onTold = () => undefined }: Scenario): Promise<Subject> {
  const told: string[] = [];
  const fixture = await WatchFixture.create({
    onEvent: ({ kind, key }) => {
      const name = key.replace("default/", "");
      told.push(`${kind} ${name}`);
      onTold(name);
    },
  });
  return {
    server: fixture.server,
    collection: fixture.collection,
    told,
    version: (name) => versionOf(fixture.watch.get(`default/${name}`)),
    start: () => fixture.sync(),
    stop: () => fixture.stop(),
  };
}

async function clientNodes({ onTold = () => undefined }: Scenario): Promise<Subject> {
  // It sends the file as it is, and no header can carry a line break.
  const server = await FakeApiServer.start("");
  const collection = new FakeCollection();
  server.handler = collection.handler;
  const config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  // As it loads a pod's own credential: it knows no tokenFile of a kubeconfig.
  const tokenFile = join(server.folder, "token");
  const authProvider = { name: "tokenFile", config: { tokenFile } };
  config.users = [{ name: "fake", authProvider }];
  const told: string[] = [];
  const list = (): Promise<KubernetesListObject<KubernetesObject>> =>
    listWith(config, collection.path);
  const informer = makeInformer(config, collection.path, list);
  for (const [event, kind] of [
    ["add", "added"],
    ["update", "modified"],
    ["delete", "deleted"],
  ] as const) {
    informer.on(event, (object: KubernetesObject) => {
      const name = object.metadata?.name ?? "";
      told.push(`${kind} ${name}`);
      onTold(name);
    });
  }
  // As its documents advise: start again a moment after an error.
  let isStopped = false;
  const again = (): void => {
    if (isStopped) return;
    void systemClock.sleep(100).then(() => (isStopped ? undefined : informer.start().catch(again)));
  };
  informer.on("error", again);
  return {
    server,
    collection,
    told,
    version: (name) => versionOf(informer.get(name, "default")),
    start: async () => {
      await informer.start().catch(again);
    },
    stop: async () => {
      isStopped = true;
      await informer.stop();
      await server.stop();
    },
  };
}

/** What a generated client does for an informer: one GET with the config's TLS and token. */
async function listWith(
  config: KubeConfig,
  path: string,
): Promise<KubernetesListObject<KubernetesObject>> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const url = `${config.getCurrentCluster()?.server ?? ""}${path}`;
  return await new Promise((resolve, reject) => {
    const asked = get(url, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(Object.assign(new Error(text), { code: response.statusCode }));
      });
      response.on("error", reject);
    });
    asked.on("error", reject);
  });
}

function versionOf(object: unknown): string | undefined {
  const { metadata } = (object ?? {}) as { metadata?: { resourceVersion?: string } };
  return metadata?.resourceVersion;
}

async function outcome(
  scenario: Scenario,
  open: (one: Scenario) => Promise<Subject>,
): Promise<string> {
  const subject = await open(scenario);
  try {
    await scenario.run(subject);
    return "yes";
  } catch (error) {
    return `no: ${error instanceof Error ? error.message : String(error)}`.slice(0, 60);
  } finally {
    await subject.stop().catch(() => undefined);
  }
}

// A handler's bug must not end the comparison: whose it would be is in the column.
process.on("uncaughtException", () => undefined);
process.on("unhandledRejection", () => undefined);
const width = Math.max(...scenarios.map(({ behaviour }) => behaviour.length));
process.stdout.write(
  `${"behaviour".padEnd(width)}   ${"ours".padEnd(6)}   client-node's makeInformer\n`,
);
let isOursWhole = true;
for (const scenario of scenarios) {
  const mine = await outcome(scenario, ours);
  const theirs = await outcome(scenario, clientNodes);
  isOursWhole &&= mine === "yes";
  process.stdout.write(`${scenario.behaviour.padEnd(width)}   ${mine.padEnd(6)}   ${theirs}\n`);
}
process.exit(isOursWhole ? 0 : 1);
