/**
 * The vendor's 404 on its way to the controller, over gRPC from both real adapters. What the vendor
 * attests ends a Delete at once, as NOT_FOUND with the realm or as done; any other 404 (a wrong path, a
 * proxy's page, an empty body) is a failure, and never a statement that nothing is there.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";

import { startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { deleteRoom } from "../support/livekit-rooms.ts";
import { AnsweringProxy } from "./answering-proxy.ts";
import type { Instead } from "./answering-proxy.ts";
import { elevenLabsFront, startLiveKitFront, wordsOf } from "./vendor-front.ts";
import type { LiveKitFront, Reply, VendorFront } from "./vendor-front.ts";

const proxy = new AnsweringProxy();
let livekit: LiveKitFront;
let elevenLabs: ElevenLabs;
let elevenLabsCalls: VendorFront;

before(async () => {
  livekit = await startLiveKitFront((url) => proxy.start(url));
  elevenLabs = await startElevenLabs();
  elevenLabsCalls = elevenLabsFront(elevenLabs);
});
after(async () => {
  await livekit.stop();
  await proxy.stop();
  elevenLabsCalls.close();
  await elevenLabs.stop();
});
afterEach(async () => {
  proxy.reset();
  await elevenLabs.script({ do: "clear-faults" });
});

/** What a Delete that is repeated once says: the first time, and again. */
async function twice(front: VendorFront, key: string): Promise<readonly string[]> {
  const first = await front.delete(key);
  const again = await front.delete(key);
  return [first, again].map(wordsOf);
}

const attested = "NOT_FOUND NOT_FOUND NOT_APPLIED";

async function madeAt(front: VendorFront, key: string): Promise<string> {
  const reply = await front.ensure(key);
  assert.ok(reply.kind === "answer", wordsOf(reply));
  return reply.answer.instance?.providerId ?? "";
}

function expectRealm(reply: Reply<unknown>, realm: RegExp): void {
  assert.ok(reply.kind === "failure");
  assert.match(reply.failure.facts.realm ?? "none", realm);
}

const fronts: readonly (readonly [string, () => VendorFront, RegExp])[] = [
  ["LiveKit", () => livekit.front, /^livekit:live\.example\.com\//u],
  ["ElevenLabs", () => elevenLabsCalls, /^elevenlabs:global\/user-1$/u],
];

for (const [name, front, realm] of fronts) {
  describe(`a Delete at ${name}`, () => {
    it("of what never was ends with the vendor's word and its realm", async () => {
      const key = `fleet/absent/never-${name}`;
      expectRealm(await front().delete(key), realm);
      assert.deepEqual(await twice(front(), key), [attested, attested]);
    });

    it("of what is there is done, and attested from then on", async () => {
      const key = `fleet/absent/there-${name}`;
      await madeAt(front(), key);
      assert.deepEqual(await twice(front(), key), ["OK", attested]);
      assert.deepEqual(await front().ids(), []);
    });

    it("of what somebody removed at the console ends at once, by its recorded id too", async () => {
      const key = `fleet/absent/console-${name}`;
      const providerId = await madeAt(front(), key);
      await removeAtConsole(name, providerId);
      const reply = await front().delete(key, { recorded: { providerId, realm: "" } });
      assert.equal(wordsOf(reply), attested);
      expectRealm(reply, realm);
    });

    it("of what goes away between the look and the removal ends with the vendor's word", async () => {
      const key = `fleet/absent/meanwhile-${name}`;
      const providerId = await madeAt(front(), key);
      await removeBeforeDelete(name, providerId);
      assert.deepEqual(await twice(front(), key), [attested, attested]);
      assert.deepEqual(await front().ids(), []);
    });
  });
}

async function removeAtConsole(name: string, providerId: string): Promise<void> {
  if (name === "LiveKit") await deleteRoom(livekit.livekit, roomOf(providerId));
  else await elevenLabs.script({ do: "delete-agent", agentId: providerId });
}

/** The vendor answers the adapter's own request to delete with its true 404. */
async function removeBeforeDelete(name: string, providerId: string): Promise<void> {
  if (name === "LiveKit") {
    proxy.beforeNext("/DeleteRoom", () => deleteRoom(livekit.livekit, roomOf(providerId)));
    return;
  }
  const console = [{ do: "delete-agent", agentId: providerId }];
  await elevenLabs.script({ do: "fault", method: "DELETE", console });
}

/** A room's id for us is its name and the server's own. */
function roomOf(providerId: string): string {
  return providerId.split("/")[0] ?? "";
}

interface Foreign extends Instead {
  readonly what: string;
}

const html = "<html><h1>404 Not Found</h1></html>";

const anybodys: readonly Foreign[] = [
  { what: "a proxy's page", status: 404, type: "text/html", body: html },
  { what: "an empty body", status: 404, type: "text/plain", body: "" },
  { what: "a mux's plain text", status: 404, type: "text/plain", body: "404 page not found\n" },
  { what: "somebody's JSON", status: 404, type: "application/json", body: '{"message":"no"}' },
  { what: "half of a body", status: 404, type: "application/json", body: '{"code":"not_fo' },
];

const foreign: Readonly<Record<string, readonly Foreign[]>> = {
  LiveKit: [
    ...anybodys,
    {
      what: "Twirp's word for a wrong path",
      status: 404,
      type: "application/json",
      body: '{"code":"bad_route","msg":"no handler for path"}',
    },
  ],
  ElevenLabs: [
    ...anybodys,
    {
      what: "the framework's word for a wrong path",
      status: 404,
      type: "application/json",
      body: '{"detail":"Not Found"}',
    },
  ],
};

async function answerInstead(name: string, { status, type, body }: Instead): Promise<void> {
  if (name === "LiveKit") {
    proxy.answerAll({ status, type, body });
    return;
  }
  const headers = { "content-type": type };
  const effect = { kind: "answer", status, headers, text: body };
  const path = "^/v1/convai/";
  await elevenLabs.script({ do: "fault", path, times: 1_000, effect });
}

for (const [name, front] of fronts) {
  describe(`a 404 that is not ${name}'s own`, () => {
    for (const instead of foreign[name] ?? []) {
      it(`(${instead.what}) attests nothing, and the Delete ends once it is over`, async () => {
        const key = `fleet/absent/foreign-${name}-${instead.what.replaceAll(/[^a-z]+/gu, "-")}`;
        await madeAt(front(), key);
        await answerInstead(name, instead);
        const replies = [
          await front().delete(key),
          await front().describe(key),
          await front().ensure(key, { mayCreate: false }),
        ];
        for (const reply of replies) {
          assert.equal(wordsOf(reply), "UNAVAILABLE VENDOR_UNREADABLE NOT_APPLIED");
        }
        proxy.reset();
        await elevenLabs.script({ do: "clear-faults" });
        assert.deepEqual(await twice(front(), key), ["OK", attested]);
        assert.deepEqual(await front().ids(), []);
      });
    }

    it("on the removal alone leaves it in doubt, and the next Delete ends", async () => {
      const key = `fleet/absent/removal-${name}`;
      await madeAt(front(), key);
      const page = { status: 404, type: "text/html", body: html };
      if (name === "LiveKit") proxy.answerNext("/DeleteRoom", page);
      else {
        const effect = { kind: "answer", status: 404, text: html };
        await elevenLabs.script({ do: "fault", method: "DELETE", effect });
      }
      const words = wordsOf(await front().delete(key));
      assert.equal(words, "UNAVAILABLE VENDOR_UNREADABLE UNKNOWN");
      assert.equal((await front().ids()).length, 1);
      assert.deepEqual(await twice(front(), key), ["OK", attested]);
    });
  });
}
