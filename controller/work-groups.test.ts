import assert from "node:assert/strict";
import { test } from "node:test";

import { classWith } from "./resource/object-fixture.ts";
import { WorkGroups } from "./work-groups.ts";

const classes = [
  classWith("news", ["tts.example.com"], {
    spec: { adapter: { address: "tts:1" }, account: "news", maxConcurrentCalls: 8 },
  }),
  classWith("news-too", [], {
    spec: { adapter: { address: "tts:1" }, account: "news", maxConcurrentCalls: 4 },
  }),
  classWith("sport", [], { spec: { adapter: { address: "tts:1" }, account: "sport" } }),
];
const groups = new WorkGroups(() => classes);
const endpoint = "https://tts.example.com/v1";

test("classes of one adapter and account are one group, whatever their names", () => {
  const [news] = groups.of({ spec: { endpoint }, status: { className: "news", account: "news" } });
  const [too] = groups.of({
    spec: { endpoint },
    status: { className: "news-too", account: "news" },
  });
  const [sport] = groups.of({
    spec: { endpoint },
    status: { className: "sport", account: "sport" },
  });
  assert.equal(news, too);
  assert.notEqual(news, sport);
  assert.ok(news?.startsWith(`${groups.account({ class: "news", account: "news", endpoint })}|`));
});

test("an object that moves counts where it is as well as where it goes", () => {
  const status = {
    className: "news",
    account: "news",
    placements: [
      { class: "sport", account: "sport", endpoint, state: "Retiring" },
      { class: "news", account: "news", endpoint },
    ],
  };
  assert.equal(groups.of({ spec: { endpoint }, status }).length, 2);
});

test("an object without a status yet, of a class that is not there, or of none, has a group", () => {
  const of = (spec: object): readonly string[] => groups.of({ spec });
  assert.equal(of({ endpoint, className: "news" }).length, 1);
  assert.notDeepEqual(of({ endpoint, className: "nowhere" }), of({ endpoint, className: "news" }));
  assert.equal(of({ endpoint: "no address" }).length, 1);
  assert.equal(groups.of(undefined).length, 1);
});

test("the least of the bounds that the classes of an account state is its limit", () => {
  const account = groups.account({ class: "news", account: "news", endpoint });
  assert.deepEqual([...groups.limits()], [[account, 4]]);
});
