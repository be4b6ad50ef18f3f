import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ProviderError } from "../contract/provider-error.ts";
import { addressRules, checkEndpoint, hostMatches, isHostPattern } from "./allow-list.ts";
import type { EndpointRules } from "./allow-list.ts";
import { guardedLookup } from "./guarded-lookup.ts";
import type { Resolver } from "./guarded-lookup.ts";

const publicOnly = addressRules([]);
const rules: EndpointRules = {
  hosts: [
    "api.example.com",
    "*.vendor.example",
    "10.1.2.3",
    "127.0.0.1",
    "8.8.8.8",
    "[::1]",
    "::1",
  ],
  allowsPlainLoopback: false,
  allowedNetworks: publicOnly,
};

function isRefused(endpoint: string, own: EndpointRules = rules): boolean {
  try {
    checkEndpoint(endpoint, own);
    return false;
  } catch (error) {
    assert.ok(error instanceof ProviderError);
    assert.equal(error.reason, "ENDPOINT_NOT_ALLOWED");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(error.facts.fields?.[0]?.path, "endpoint");
    assert.ok(!error.message.includes("hunter2"));
    return true;
  }
}

describe("an endpoint is allowed only by rule", () => {
  const accepted = [
    "https://api.example.com",
    "https://API.example.com:8443/v1/base",
    "https://eu.vendor.example/x",
    "https://a.b.vendor.example",
    "https://8.8.8.8",
  ];
  for (const endpoint of accepted) {
    it(`accepts ${endpoint}`, () => assert.equal(isRefused(endpoint), false));
  }
  const refused = [
    "",
    "api.example.com",
    "ftp://api.example.com",
    "http://api.example.com",
    "https://user:hunter2@api.example.com",
    "https://api.example.com/?next=1",
    "https://api.example.com/#x",
    "https://api.example.com/a b",
    "https://api.example.com.evil.example",
    "https://evilapi.example.com",
    "https://vendor.example",
    "https://xvendor.example",
    "https://10.1.2.3",
    "https://127.0.0.1",
    "https://0x7f.1",
    "https://2130706433",
    "https://[::1]",
    `https://api.example.com/${"x".repeat(2048)}`,
  ];
  for (const endpoint of refused) {
    it(`refuses ${endpoint.slice(0, 60)}`, () => assert.equal(isRefused(endpoint), true));
  }

  it("accepts plain http to a loopback address with the option, and to nothing else", () => {
    const development = { ...rules, allowsPlainLoopback: true };
    assert.equal(isRefused("http://127.0.0.1:8080", development), false);
    assert.equal(isRefused("http://api.example.com", development), true);
    assert.equal(isRefused("http://10.1.2.3", development), true);
  });

  it("accepts a private address inside an allowed network", () => {
    const inside = { ...rules, allowedNetworks: addressRules(["10.1.0.0/16"]) };
    assert.equal(isRefused("https://10.1.2.3", inside), false);
    assert.equal(isRefused("https://127.0.0.1", inside), true);
  });
});

describe("a host pattern", () => {
  it("matches below its suffix only", () => {
    assert.equal(hostMatches("*.vendor.example", "a.vendor.example"), true);
    assert.equal(hostMatches("*.vendor.example", "a.vendor.example."), true);
    assert.equal(hostMatches("*.vendor.example", "vendor.example"), false);
    assert.equal(hostMatches("*.0.0.1", "127.0.0.1"), false);
  });

  it("is a name, an address, or a star and a name", () => {
    for (const sound of ["a", "a.b", "*.b.c", "10.0.0.1", "::1"]) {
      assert.equal(isHostPattern(sound), true, sound);
    }
    for (const broken of ["", "*", "a.*", "*.10.0.0.1", "https://a", "a:1", "a/b", "-a"]) {
      assert.equal(isHostPattern(broken), false, broken);
    }
  });
});

describe("an address is public or allowed by network", () => {
  const inner = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.31.0.1",
    "192.168.1.1",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fd00::1",
    "fe80::1",
    "not an address",
  ];
  for (const address of inner) {
    it(`refuses ${address}`, () => assert.equal(publicOnly.isAllowed(address), false));
  }
  for (const address of ["8.8.8.8", "172.32.0.1", "2606:4700::1111"]) {
    it(`accepts ${address}`, () => assert.equal(publicOnly.isAllowed(address), true));
  }

  it("refuses to start with a network that is none", () => {
    for (const broken of ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/8/8", "::/129"]) {
      assert.throws(() => addressRules([broken]), /CIDR/);
    }
  });
});

describe("a name is judged by the addresses it resolves to at connect time", () => {
  const resolverOf =
    (...addresses: string[]): Resolver =>
    (_name, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
  const resolve = (resolver: Resolver, all: boolean): Promise<unknown> =>
    new Promise((done, fail) => {
      const lookup = guardedLookup(publicOnly, resolver);
      lookup("name.example", { all }, (error, address) =>
        error === null ? done(address) : fail(error),
      );
    });

  it("passes public addresses on in the shape that was asked for", async () => {
    assert.equal(await resolve(resolverOf("8.8.8.8", "8.8.4.4"), false), "8.8.8.8");
    assert.deepEqual(await resolve(resolverOf("8.8.8.8"), true), [
      { address: "8.8.8.8", family: 4 },
    ]);
  });

  it("refuses the name when any of its addresses is private", async () => {
    for (const addresses of [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"]]) {
      await assert.rejects(resolve(resolverOf(...addresses), true), {
        code: "DHP_ADDRESS_REFUSED",
      });
    }
  });

  it("fails when there is no address", async () => {
    await assert.rejects(resolve(resolverOf(), true));
  });
});
