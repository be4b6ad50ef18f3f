import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deployFolder, Installation } from "./whole-installation.ts";

let installation: Installation;

before(async () => {
  installation = await Installation.start();
});
after(() => installation.stack.stop());

test("taken away in the documented order everything goes, and no instance is left", async () => {
  await installation.kubectl("delete", "dhp", "--all", "-A", "--timeout=30s");
  assert.equal(await installation.roomCount(), 0);
  await installation.kubectl("delete", "dhpclass", "--all", "--timeout=30s");
  await installation.stack.controller.stop();
  await installation.kubectl("delete", "-k", deployFolder, "--timeout=60s");
  await installation.untilNothingIsLeft();
});
