import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { FieldChange, WantedInstance } from "../../services/adapter-host/adapter.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { avatarIds, voiceIds } from "./emulator-persona.ts";
import { descriptionWith } from "./stamp-text.ts";
import {
  changesBody,
  foundInstance,
  parseCreatedId,
  parsePage,
  parsePersona,
  settingsBody,
} from "./translate.ts";

const stamp = makeStamp("fleet/ns/name", { cluster: "5a8c", uid: "0f1e" }, "hash-1");
const wanted: WantedInstance = {
  stamp,
  displayName: "晚会",
  parameters: {
    avatarId: avatarIds[0],
    voiceId: voiceIds[0],
    llmId: "c0000000-0000-4000-8000-000000000001",
    systemPrompt: "You read the news.",
    avatarModel: "cara-4",
    skipGreeting: "true",
  },
  quota: {},
};
const id = "d0000000-0000-4000-8000-000000000001";
const common = {
  id,
  name: "晚会",
  description: descriptionWith(stamp, "the evening show"),
  createdAt: "2026-04-20T10:00:00.000Z",
};
const { avatarId, voiceId, llmId, systemPrompt, avatarModel } = wanted.parameters;
const inParts = {
  ...common,
  avatar: { id: avatarId, displayName: "Liv" },
  voice: { id: voiceId },
  llmId,
  brain: { personality: null, systemPrompt },
  avatarModel,
  skipGreeting: true,
};
const flat = { ...common, avatarId, voiceId, llmId, systemPrompt, avatarModel, skipGreeting: true };

describe("a persona", () => {
  it("that we made says whose it is and what was asked for, in both published forms", () => {
    for (const shown of [inParts, flat]) {
      assert.deepEqual(foundInstance(parsePersona(shown)), {
        id,
        stamp,
        state: "READY",
        availability: "AVAILABLE",
        displayName: "晚会",
        parameters: wanted.parameters,
        createdAtMs: Date.parse("2026-04-20T10:00:00.000Z"),
      });
    }
  });

  it("as a list trims it says nothing of what is left out", () => {
    const { avatar, voice } = inParts;
    const trimmed = { ...common, avatar, voice };
    const { parameters, availability } = foundInstance(parsePersona(trimmed));
    assert.deepEqual(parameters, { avatarId, voiceId });
    assert.equal(availability, "AVAILABLE");
  });

  it("without its avatar or voice is no longer available", () => {
    for (const lost of [{ avatar: null }, { voice: null }, { avatar: null, voice: null }]) {
      const found = foundInstance(parsePersona({ ...inParts, ...lost }));
      assert.equal(found.availability, "UNAVAILABLE");
      assert.match(found.message ?? "", /has no (avatar|voice)/);
    }
    assert.equal(
      foundInstance(parsePersona({ ...flat, voiceId: null })).availability,
      "UNAVAILABLE",
    );
  });

  it("that shows no description, or nobody's, is nobody's", () => {
    for (const description of [undefined, null, "", "A helpful assistant"]) {
      assert.equal(foundInstance(parsePersona({ ...inParts, description })).stamp, undefined);
    }
  });

  it("with a field of another kind than documented is unreadable, not guessed", () => {
    const broken = [
      { id: undefined },
      { id: 7 },
      { name: 7 },
      { description: ["x"] },
      { avatar: "Liv" },
      { brain: 1 },
      { skipGreeting: "yes" },
    ];
    for (const fields of broken) {
      assert.throws(() => parsePersona({ ...inParts, ...fields }), isUnreadable);
    }
    for (const json of [undefined, null, [], "x"]) {
      assert.throws(() => parsePersona(json), isUnreadable);
      assert.throws(() => parseCreatedId(json), isUnreadable);
    }
  });
});

describe("a body", () => {
  it("of create holds all that is wanted and nothing else", () => {
    const own = { name: "晚会", skipGreeting: true };
    assert.deepEqual(settingsBody(wanted), { ...wanted.parameters, ...own });
    assert.deepEqual(settingsBody({ stamp, parameters: {}, quota: {} }), {});
  });

  it("of update holds what differs, and the avatar's model with the avatar", () => {
    const change = (field: string): FieldChange => ({ field, want: "x", have: undefined });
    assert.deepEqual(changesBody(wanted, []), {});
    assert.deepEqual(changesBody(wanted, [change("displayName")]), { name: "晚会" });
    assert.deepEqual(changesBody(wanted, [change("parameters.avatarId")]), {
      avatarId,
      avatarModel,
    });
    assert.deepEqual(changesBody(wanted, [change("parameters.skipGreeting")]), {
      skipGreeting: true,
    });
  });
});

describe("a page", () => {
  const meta = { total: 3, lastPage: 2, currentPage: 1, perPage: 2, prev: null, next: 2 };

  it("says which one it is and which is next", () => {
    assert.equal(parsePage({ data: [inParts], meta }).nextPage, 2);
    assert.equal(parsePage({ data: [], meta: { ...meta, next: null } }).nextPage, undefined);
  });

  it("is unreadable when it does not lead on, so that no half list proves an absence", () => {
    for (const own of [{ next: 1 }, { next: "2" }, { next: 1.5 }, { currentPage: undefined }]) {
      assert.throws(() => parsePage({ data: [], meta: { ...meta, ...own } }), isUnreadable);
    }
    for (const json of [{ meta }, { data: {}, meta }, { data: [] }, { data: [null], meta }]) {
      assert.throws(() => parsePage(json), isUnreadable);
    }
  });
});

function isUnreadable(error: unknown): boolean {
  return error instanceof ProviderError && error.reason === "VENDOR_UNREADABLE";
}
