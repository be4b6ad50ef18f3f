/**
 * The adapter is killed between the vendor's commit and its reply. A fresh process knows nothing, and
 * the vendor's lists do not show the instance yet. This test plays the controller's part: it may not
 * create until the time is over in which the lost create can still show; then it may.
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { elevenLabsFront, wordsOf } from "./vendor-front.ts";
import type { VendorFront } from "./vendor-front.ts";

/** The vendor's clock: longer than its lists lag. */
const listLagMs = 30_000;
/** And longer than a create may take, the lists' lag, and clocks' difference together. */
const doubtMs = 120_000;

const createPath = "^/v1/convai/agents/create$";
const hang = { kind: "hang" };

let vendor: ElevenLabs;
let count = 0;

before(async () => {
  vendor = await startElevenLabs();
});
after(() => vendor.stop());
beforeEach(async () => {
  await vendor.script(
    { do: "clear-faults" },
    { do: "set", settings: { listLagMs: 0, readLagMs: 0 } },
  );
  for (const { id } of await vendor.agents())
    await vendor.script({ do: "delete-agent", agentId: id });
  // What was there before is past, also to lists that lag.
  await vendor.script({ do: "advance", ms: doubtMs });
});

interface KillMoment {
  readonly when: string;
  /** What is armed before Ensure is sent. */
  readonly faults: readonly object[];
  /** Agents that are there when the adapter dies. */
  readonly agentsAtDeath: 0 | 1;
  /** Agents that are there in the end before anybody may create again. */
  readonly agentsInDoubt: 0 | 1;
}

const moments: readonly KillMoment[] = [
  {
    when: "while the vendor's answer to the create is on its way",
    faults: [{ do: "fault", method: "POST", path: createPath, isAfter: true, effect: hang }],
    agentsAtDeath: 1,
    agentsInDoubt: 1,
  },
  {
    when: "while it looks at what it made, by id",
    faults: [{ do: "fault", method: "GET", path: "^/v1/convai/agents/agent_", effect: hang }],
    agentsAtDeath: 1,
    agentsInDoubt: 1,
  },
  {
    when: "while it lists what it made",
    faults: [
      // Proof of absence first: two scans of two lists each.
      { do: "fault", method: "GET", path: "^/v1/convai/agents$", skip: 4, effect: hang },
    ],
    agentsAtDeath: 1,
    agentsInDoubt: 1,
  },
  {
    when: "while the vendor has not committed yet, which it does afterwards",
    faults: [{ do: "fault", method: "POST", path: createPath, delayMs: 1_500 }],
    agentsAtDeath: 0,
    agentsInDoubt: 1,
  },
  {
    when: "while the vendor ponders a create that it never commits",
    faults: [{ do: "fault", method: "POST", path: createPath, effect: hang }],
    agentsAtDeath: 0,
    agentsInDoubt: 0,
  },
  {
    when: "while it proves that nothing is there",
    faults: [{ do: "fault", method: "GET", path: "^/v1/convai/agents$", skip: 1, effect: hang }],
    agentsAtDeath: 0,
    agentsInDoubt: 0,
  },
];

/** Sends an Ensure, kills the adapter when the fault has been met, and starts a fresh one. */
async function dieDuring(moment: KillMoment, key: string): Promise<VendorFront> {
  await vendor.script(...moment.faults);
  const before = elevenLabsFront(vendor);
  const lost = before.ensure(key);
  await eventually(async () => {
    assert.deepEqual(await vendor.faults(), [], "the fault still waits");
    assert.equal((await vendor.agents()).length, moment.agentsAtDeath);
  });
  await vendor.adapter.kill();
  assert.match(wordsOf(await lost), /^UNAVAILABLE/u);
  before.close();
  await vendor.script({ do: "set", settings: { listLagMs } });
  await vendor.startAdapter();
  return elevenLabsFront(vendor);
}

/** Nobody may create, and nothing is: neither what is there nor what is not is taken for certain. */
async function stayInDoubt(front: VendorFront, key: string): Promise<void> {
  for (let asked = 0; asked < 3; asked += 1) {
    const reply = await front.ensure(key, { mayCreate: false });
    assert.equal(wordsOf(reply), "ABORTED IN_DOUBT NOT_APPLIED");
    assert.ok(reply.kind === "failure" && (reply.failure.facts.retryAfterMs ?? 0) > 0);
  }
  // The lag is real: an adapter without memory cannot know better.
  assert.match(wordsOf(await front.describe(key)), /^NOT_FOUND NOT_FOUND/u);
}

async function endWithOne(front: VendorFront, key: string, inDoubt: 0 | 1): Promise<void> {
  // Who creates waits until lists show it, which is not what this is about.
  if (inDoubt === 0) await vendor.script({ do: "set", settings: { listLagMs: 0 } });
  const posts = await createsSoFar();
  const reply = await front.ensure(key);
  assert.ok(reply.kind === "answer", wordsOf(reply));
  assert.equal(reply.answer.change, inDoubt === 1 ? Change.NONE : Change.CREATED);
  assert.equal((await createsSoFar()) - posts, 1 - inDoubt);
  const agents = await vendor.agents();
  assert.deepEqual(
    agents.map(({ id }) => id),
    [reply.answer.instance?.providerId],
  );
}

async function createsSoFar(): Promise<number> {
  return (await vendor.requests()).filter(({ change }) => change === "created").length;
}

describe("an adapter that is killed", () => {
  for (const moment of moments) {
    it(`${moment.when} leaves one instance, and its successor finds it`, async () => {
      count += 1;
      const key = `fleet/killed/object-${count}`;
      const front = await dieDuring(moment, key);
      try {
        await eventually(async () =>
          assert.equal((await vendor.agents()).length, moment.agentsInDoubt),
        );
        await stayInDoubt(front, key);
        assert.equal((await vendor.agents()).length, moment.agentsInDoubt);
        // The window passes, on the vendor's clock alone: the fresh adapter has nothing to wait for.
        await vendor.script({ do: "advance", ms: doubtMs });
        await endWithOne(front, key, moment.agentsInDoubt);
      } finally {
        front.close();
      }
    });
  }

  it("again and again at any moment leaves one instance, as its keeper waits each time", async () => {
    const key = "fleet/killed/often";
    // The user, two scans of two lists, the create, the looks at it: before, during and after.
    for (const requests of [2, 5, 6, 7]) {
      const front = elevenLabsFront(vendor);
      const requestsAtDeath = (await vendor.requests()).length + requests;
      const lost = front.ensure(key);
      await eventually(async () =>
        assert.ok((await vendor.requests()).length >= requestsAtDeath, "it is not that far"),
      );
      await vendor.adapter.kill();
      await lost;
      front.close();
      await vendor.script({ do: "advance", ms: doubtMs });
      assert.ok((await vendor.agents()).length <= 1);
      await vendor.startAdapter();
    }
    const front = elevenLabsFront(vendor);
    const reply = await front.ensure(key);
    front.close();
    assert.equal(wordsOf(reply), "OK");
    assert.equal((await vendor.agents()).length, 1);
  });
});
