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
    "169.254.169.254",
    "::1",
    "::ffff:7f00:1",
    "::7f00:1",
  ],
  allowsPlainLoopback: false,
  allowedNetworks: publicOnly,
};

/** Why an endpoint is refused; undefined: it is not. */
function refusal(endpoint: string, own: EndpointRules = rules): string | undefined {
  try {
    checkEndpoint(endpoint, own);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ProviderError);
    assert.equal(error.reason, "ENDPOINT_NOT_ALLOWED");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(error.facts.fields?.[0]?.path, "endpoint");
    assert.ok(!error.message.includes("hunter2"));
    return error.message;
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
    it(`accepts ${endpoint}`, () => assert.equal(refusal(endpoint), undefined));
  }

  const notListed = /is not on the account's list/;
  const privateAddress = /127\.0\.0\.1 is a private address/;
  const ambiguous = /is not of the form https:\/\/HOST\/PATH/;
  const userInfo = /must not carry user or password/;
  const refused: readonly (readonly [endpoint: string, why: RegExp])[] = [
    ["", /is not a URL/],
    ["api.example.com", /is not a URL/],
    ["ftp://api.example.com", /must be https, not ftp:/],
    ["http://api.example.com", /must be https, not http:/],
    ["file:///etc/passwd", ambiguous],
    ["https://user:hunter2@api.example.com", userInfo],
    ["https://api.example.com:443@evil.example", userInfo],
    ["https://@api.example.com", userInfo],
    ["https://api.example.com/?next=1", /a query, a fragment or spaces/],
    ["https://api.example.com/#x", /a query, a fragment or spaces/],
    ["https://evil.example#@api.example.com", userInfo],
    ["https://api.example.com/a b", /a query, a fragment or spaces/],
    ["https://api.example.com\t.evil.example", /a query, a fragment or spaces/],
    ["https://api.example.com\\@evil.example", ambiguous],
    ["https:api.example.com", ambiguous],
    ["https:///api.example.com", ambiguous],
    ["https://api.example.com:99999", /is not a URL/],
    ["https://api.example.com:0", /must not have port 0/],
    ["https://api.example.com.evil.example", notListed],
    ["https://api.example.com%2eevil.example", notListed],
    ["https://evilapi.example.com", notListed],
    ["https://evil.example/@api.example.com", notListed],
    ["https://vendor.example", notListed],
    ["https://xvendor.example", notListed],
    // A Cyrillic "а": another name, which is told as it is written on the wire.
    ["https://\u0430pi.example.com", /host xn--pi-6kc\.example\.com is not on/],
    ["https://xn--pi-6kc.example.com", notListed],
    ["https://10.1.2.3", /10\.1\.2\.3 is a private address/],
    ["https://169.254.169.254", /169\.254\.169\.254 is a private address/],
    ["https://127.0.0.1", privateAddress],
    ["https://127.1", privateAddress],
    ["https://0x7f.1", privateAddress],
    ["https://0177.0.0.1", privateAddress],
    ["https://2130706433", privateAddress],
    ["https://017700000001", privateAddress],
    ["https://\u246027.0.0.1", privateAddress],
    ["https://[::1]", /::1 is a private address/],
    ["https://[::ffff:127.0.0.1]", /::ffff:7f00:1 is a private address/],
    ["https://[::127.0.0.1]", /::7f00:1 is a private address/],
    ["https://[fe80::1%25eth0]", /is not a URL/],
    [`https://api.example.com/${"x".repeat(2048)}`, /is longer than 2048 bytes/],
  ];
  for (const [endpoint, why] of refused) {
    it(`refuses ${endpoint.slice(0, 60)}`, () => assert.match(refusal(endpoint) ?? "", why));
  }

  it("accepts plain http to a loopback address with the option, and to nothing else", () => {
    const development = { ...rules, allowsPlainLoopback: true };
    assert.equal(refusal("http://127.0.0.1:8080", development), undefined);
    const mustBeHttps = /must be https/;
    assert.match(refusal("http://api.example.com", development) ?? "", mustBeHttps);
    assert.match(refusal("http://10.1.2.3", development) ?? "", mustBeHttps);
  });

  it("accepts a private address inside an allowed network", () => {
    const inside = { ...rules, allowedNetworks: addressRules(["10.1.0.0/16"]) };
    assert.equal(refusal("https://10.1.2.3", inside), undefined);
    assert.match(refusal("https://127.0.0.1", inside) ?? "", privateAddress);
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
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:53aa:64c:0:0:f5ff:fffe",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "010.0.0.1",
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

  it("judges a name anew at each connect, so that a change of its address gains nothing", async () => {
    const answers = ["8.8.8.8", "169.254.169.254"];
    const changing: Resolver = (...asked) => resolverOf(answers.shift() ?? "")(...asked);
    assert.equal(await resolve(changing, false), "8.8.8.8");
    await assert.rejects(resolve(changing, false), {
      code: "DHP_ADDRESS_REFUSED",
      message: "name.example resolves to the private address 169.254.169.254",
    });
  });

  it("fails when there is no address", async () => {
    await assert.rejects(resolve(resolverOf(), true));
  });
});
