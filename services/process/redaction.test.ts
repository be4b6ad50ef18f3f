import assert from "node:assert/strict";
import { test } from "node:test";

import { isSecretName, redactText, redactValue, redacted, registerSecret } from "./redaction.ts";

const shapes: readonly { readonly text: string; readonly secret: string }[] = [
  { text: "Authorization: Bearer abc.def-ghi", secret: "abc.def-ghi" },
  { text: 'headers {"authorization":"AWS4 Credential=AK/x, Signature=9f8e"}', secret: "9f8e" },
  { text: "sent bearer s3cr3t-value-1 to the vendor", secret: "s3cr3t-value-1" },
  { text: "Basic dXNlcjpwYXNzd29yZA==", secret: "dXNlcjpwYXNzd29yZA==" },
  { text: "got eyJhbGciOiJIUzI1.eyJzdWIiOiJ4In0.c2ln back", secret: "eyJzdWIiOiJ4In0" },
  { text: '{"turn_password": "p w with spaces"}', secret: "p w with spaces" },
  { text: String.raw`body "{\"turn_password\":\"pw123\"}"`, secret: "pw123" },
  { text: "api_key=k-1-2-3&region=x", secret: "k-1-2-3" },
  { text: "apiSecret: 'q1w2e3'", secret: "q1w2e3" },
  { text: "X-Api-Key: 0000-1111", secret: "0000-1111" },
  { text: "cannot open https://user:hunter2@host/x", secret: "hunter2" },
  { text: "key sk-abcdefghijklmnopqrst is wrong", secret: "abcdefghijklmnopqrst" },
  {
    text: "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----",
    secret: "MHcCAQEE",
  },
  { text: "-----BEGIN PRIVATE KEY-----\nMHcCAQEE", secret: "MHcCAQEE" },
];

for (const { text, secret } of shapes) {
  test(`a secret is known by its shape: ${text.slice(0, 30).replaceAll("\n", " ")}`, () => {
    const clean = redactText(text);
    assert.ok(!clean.includes(secret), clean);
    assert.ok(clean.includes(redacted), clean);
  });
}

test("text without secrets stays as it is", () => {
  for (const text of [
    'cannot ensure "fleet/a/b" at "aliyun": timeout after 5000 ms',
    "next_page_token=page-2 page_size=10",
    "credentialsFile: /etc/dhp/accounts.yaml",
    "basic authentication is not supported",
    "instance_key=fleet/ns/name",
    "杭州文字转语音",
  ]) {
    assert.equal(redactText(text), text);
  }
});

test("a registered secret is taken out in every usual encoding", () => {
  const secret = 'sentinel/+"\n7f3a';
  assert.equal(registerSecret(secret), true);
  const forms = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret),
    Buffer.from(secret).toString("base64"),
    Buffer.from(secret).toString("base64url"),
  ];
  for (const form of forms) assert.ok(redactText(`<${form}>`).includes(redacted), form);
  assert.ok(!JSON.stringify(redactValue({ a: [{ b: forms }] })).includes("7f3a"));
  assert.ok(!JSON.stringify(redactValue({ [secret]: 1 })).includes("7f3a"));
});

test("values too short to be told from ordinary text are refused", () => {
  assert.equal(registerSecret("abc"), false);
  assert.equal(redactText("abc"), "abc");
});

test("a secret at the end of a text that is cut does not survive in part", () => {
  registerSecret("straddling-secret-0123456789");
  const clean = redactText(`${"x".repeat(65_530)}straddling-secret-0123456789`);
  assert.ok(!clean.includes("stra"));
  assert.ok(clean.length < 17_000);
});

test("long hostile text is handled in linear time", () => {
  const startMs = performance.now();
  for (const text of [
    "a".repeat(1e6),
    '\\"'.repeat(1e6),
    "token=".repeat(1e5),
    "://a:".repeat(1e5),
  ]) {
    redactText(text);
  }
  assert.ok(performance.now() - startMs < 5_000);
});

test("members with secret names are hidden whatever their type", () => {
  assert.deepEqual(
    redactValue({ password: "a", apiKey: 5, nested: { secret: { x: 1 } }, name: "n" }),
    {
      password: redacted,
      apiKey: redacted,
      nested: { secret: redacted },
      name: "n",
    },
  );
});

test("names of files, pages and counts are not secret", () => {
  for (const name of [
    "pageToken",
    "next_page_token",
    "credentialsFile",
    "secretRef",
    "instanceKey",
  ]) {
    assert.equal(isSecretName(name), false, name);
  }
  for (const name of ["turn_password", "X-Api-Key", "access.key", "clientSecret", "Set-Cookie"]) {
    assert.equal(isSecretName(name), true, name);
  }
});

test("errors keep name, message, cause and own members", () => {
  const error = new TypeError("outer", { cause: new Error("token=abcdef") });
  const clean = JSON.parse(JSON.stringify(redactValue(Object.assign(error, { code: "E1" }))));
  assert.equal(clean.name, "TypeError");
  assert.equal(clean.message, "outer");
  assert.equal(clean.code, "E1");
  assert.equal(clean.cause.message, `token=${redacted}`);
});

test("depth, width, cycles and unreadable members are bounded", () => {
  const cycle: Record<string, unknown> = { bytes: new Uint8Array(3), big: 1n, at: new Date(0) };
  cycle["self"] = cycle;
  assert.deepEqual(redactValue(cycle), {
    bytes: "[3 bytes]",
    big: "1",
    at: "1970-01-01T00:00:00.000Z",
    self: "[circular]",
  });
  let deep: unknown = 1;
  for (let depth = 0; depth < 50; depth += 1) deep = { deep };
  assert.ok(JSON.stringify(redactValue(deep)).includes("[too deep]"));
  const wide = Array.from({ length: 500 }, () => Array.from({ length: 500 }, () => 1));
  assert.ok(JSON.stringify(redactValue(wide)).length < 20_000);
  const unreadable = Object.defineProperty({}, "x", {
    enumerable: true,
    get: () => {
      throw new Error("no");
    },
  });
  assert.equal(redactValue(unreadable), "[unreadable]");
});
