import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ProviderError } from "../../services/contract/provider-error.ts";
import type { WantedInstance } from "../../services/adapter-host/adapter.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";
import {
  createRoomBody,
  foundInstance,
  parseRoom,
  parseRooms,
  providerIdOf,
  readProviderId,
  roomMetadata,
} from "./translate.ts";
import type { Room } from "./translate.ts";

const owner = { cluster: "5a8c", uid: "0f1e" };
const stamp = makeStamp("fleet/ns/name", owner, "hash-1");
const wanted: WantedInstance = {
  stamp,
  displayName: "晚会",
  parameters: { maxParticipants: "50", applicationMetadata: '{"a":1}' },
  quota: {},
};

function roomWith(own: Partial<Room>): Room {
  return {
    sid: "RM_1",
    name: stamp.keyShort,
    metadata: roomMetadata(wanted, undefined),
    maxParticipants: 50,
    numParticipants: 3,
    createdAtMs: 1000,
    ...own,
  };
}

describe("a room", () => {
  it("that we made says whose it is and what was asked for", () => {
    const found = foundInstance(roomWith({}));
    assert.deepEqual(found.stamp, stamp);
    assert.equal(found.displayName, wanted.displayName);
    assert.deepEqual(found.parameters, wanted.parameters);
    assert.deepEqual(found.usage, { concurrency: { used: 3, limit: 50 } });
  });

  const strangers = [
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"dhp":1}',
    JSON.stringify({ dhp: 1, key: "fleet/ns/other", owner }),
    JSON.stringify({ dhp: 1, key: "fleet/ns/name", owner: { cluster: 5, uid: "" } }),
    JSON.stringify({ dhp: 2, key: "fleet/ns/name", owner }),
  ];
  for (const metadata of strangers) {
    it(`with metadata ${metadata || "(none)"} carries no stamp`, () => {
      assert.equal(foundInstance(roomWith({ metadata })).stamp, undefined);
    });
  }

  it("keeps what is not asked for when it is written again", () => {
    const found = foundInstance(roomWith({}));
    const { displayName, ...rest } = wanted;
    const again = foundInstance(roomWith({ metadata: roomMetadata(rest, found) }));
    assert.equal(again.displayName, displayName);
  });

  it("without a limit has none in its use", () => {
    const found = foundInstance(roomWith({ maxParticipants: 0 }));
    assert.deepEqual(found.usage, { concurrency: { used: 3 } });
  });

  it("is asked to stay when nobody is in it", () => {
    const body = JSON.parse(JSON.stringify(createRoomBody(wanted)));
    assert.equal(body.name, stamp.keyShort);
    assert.equal(body.empty_timeout, 4_294_967_295);
    assert.equal(body.departure_timeout, 4_294_967_295);
    assert.equal(body.max_participants, 50);
  });
});

describe("provider_id", () => {
  it("is name and sid", () => {
    assert.equal(providerIdOf({ name: "a/b", sid: "RM_1" }), "a/b/RM_1");
    assert.deepEqual(readProviderId("a/b/RM_1"), { name: "a/b", sid: "RM_1" });
  });

  it("of another form is nobody's", () => {
    for (const id of ["", "RM_1", "/RM_1", "name/"]) assert.equal(readProviderId(id), undefined);
  });
});

describe("an answer", () => {
  it("leaves out what is zero and writes long numbers as text", () => {
    const room = parseRoom({ sid: "RM_1", name: "n", creation_time: "12" });
    assert.deepEqual(room, {
      sid: "RM_1",
      name: "n",
      metadata: "",
      maxParticipants: 0,
      numParticipants: 0,
      createdAtMs: 12_000,
    });
    assert.deepEqual(parseRooms({}), []);
  });

  it("never passes the turn password on", () => {
    const room = parseRoom({ sid: "RM_1", name: "n", turn_password: "sentinel" });
    assert.ok(!JSON.stringify([room, foundInstance(room)]).includes("sentinel"));
  });

  const broken = [
    undefined,
    null,
    "x",
    [],
    { rooms: 1 },
    { rooms: [{}] },
    { rooms: [{ sid: "a" }] },
  ];
  for (const json of broken) {
    it(`is refused as ${JSON.stringify(json)}`, () => {
      assert.throws(
        () => parseRooms(json),
        (error) => error instanceof ProviderError && error.reason === "VENDOR_UNREADABLE",
      );
    });
  }
});
