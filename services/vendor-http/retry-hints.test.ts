import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { retryAfterMs, retryAfterMsMax } from "./retry-hints.ts";

const nowMs = Date.UTC(2026, 2, 1, 12, 0, 0);

interface Row {
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly expected: number | undefined;
}

const rows: readonly Row[] = [
  { why: "no hint", expected: undefined },
  { why: "seconds", headers: { "retry-after": "7" }, expected: 7000 },
  { why: "fraction of seconds", headers: { "retry-after": "0.25" }, expected: 250 },
  { why: "zero", headers: { "retry-after": "0" }, expected: 0 },
  { why: "negative is no hint", headers: { "retry-after": "-5" }, expected: undefined },
  { why: "garbage is no hint", headers: { "retry-after": "soon" }, expected: undefined },
  {
    why: "a date ahead",
    headers: { "retry-after": "Sun, 01 Mar 2026 12:00:30 GMT" },
    expected: 30_000,
  },
  {
    why: "a date behind means now",
    headers: { "retry-after": "Sun, 01 Mar 2026 11:00:00 GMT" },
    expected: 0,
  },
  { why: "milliseconds", headers: { "retry-after-ms": "1500" }, expected: 1500 },
  {
    why: "milliseconds beat seconds",
    headers: { "retry-after-ms": "1500", "retry-after": "9" },
    expected: 1500,
  },
  { why: "milliseconds by another name", headers: { "x-acs-retry-after": "800" }, expected: 800 },
  {
    why: "milliseconds that are no number give way",
    headers: { "retry-after-ms": "-1", "retry-after": "2" },
    expected: 2000,
  },
  {
    why: "epoch seconds",
    headers: { "x-ratelimit-reset": String(nowMs / 1000 + 12) },
    expected: 12_000,
  },
  {
    why: "small reset numbers have no agreed meaning",
    headers: { "x-ratelimit-reset": "12" },
    expected: undefined,
  },
  {
    why: "prose in minutes",
    text: '{"error":"Recrawl cooldown: please wait 45 minutes before recrawling."}',
    expected: 45 * 60_000,
  },
  { why: "prose in seconds", text: "Please try again in 20s.", expected: 20_000 },
  { why: "prose with fraction", text: "Please try again in 1.5 seconds", expected: 1500 },
  { why: "prose in milliseconds", text: "try again in 300ms", expected: 300 },
  { why: "prose with two units", text: "try again in 1m30s", expected: 90_000 },
  { why: "prose in hours has a ceiling", text: "retry after 5 hours", expected: retryAfterMsMax },
  { why: "prose in Chinese", text: "请 20 秒后重试", expected: 20_000 },
  { why: "numbers without a request to wait", text: "limit is 45 minutes", expected: undefined },
  { why: "no month taken for a minute", text: "wait 3 months", expected: undefined },
  {
    why: "seconds have a ceiling",
    headers: { "retry-after": "999999" },
    expected: retryAfterMsMax,
  },
];

describe("a retry hint becomes a duration", () => {
  for (const { why, headers = {}, text = "", expected } of rows) {
    it(why, () => assert.equal(retryAfterMs(headers, text, nowMs), expected));
  }
});
