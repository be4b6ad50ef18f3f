import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { parseConnectTo } from "./connect-to.ts";

describe("--connect-to", () => {
  it("maps an https origin to a loopback origin", () => {
    const origins = parseConnectTo([
      "https://api.example.com=http://127.0.0.1:8080",
      "https://api.example.com:8443=https://[::1]:9",
    ]);
    assert.equal(origins.get("https://api.example.com"), "http://127.0.0.1:8080");
    assert.equal(origins.get("https://api.example.com:8443"), "https://[::1]:9");
  });

  const broken = [
    "https://api.example.com",
    "http://api.example.com=http://127.0.0.1:1",
    "https://api.example.com=http://10.0.0.1:1",
    "https://api.example.com=http://localhost:1",
    "https://api.example.com/path=http://127.0.0.1:1",
    "https://api.example.com=http://127.0.0.1:1/path",
    "https://u@api.example.com=http://127.0.0.1:1",
    "https://a=http://127.0.0.1:1=http://127.0.0.1:2",
  ];
  for (const value of broken) {
    it(`refuses ${value}`, () => assert.throws(() => parseConnectTo([value])));
  }

  it("names all mistakes at once", () => {
    assert.throws(() => parseConnectTo(["nonsense", "https://a=http://10.0.0.1:1"]), {
      message: /nonsense.*10\.0\.0\.1/,
    });
  });
});
