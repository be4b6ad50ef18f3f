import assert from "node:assert/strict";
import { homedir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readDevClusterOptions } from "./dev-cluster-options.ts";

test("programs are cached below $XDG_CACHE_HOME, else below ~/.cache", () => {
  const usual = join(homedir(), ".cache/digital-human-provider");
  const cases = [
    [{ XDG_CACHE_HOME: "/var/cache/me" }, "/var/cache/me/digital-human-provider"],
    [{}, usual],
    [{ XDG_CACHE_HOME: "" }, usual],
    [{ XDG_CACHE_HOME: "relative" }, usual],
  ] as const;
  for (const [environment, cacheFolder] of cases) {
    assert.deepEqual(readDevClusterOptions(environment), { cacheFolder, environment });
  }
});
