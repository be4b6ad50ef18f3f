/** The smallest vendor there is, over HTTP in a process of its own; tells its parent the port. */
import { TestVendor } from "../../services/adapter-host/test-vendor.ts";
import type { Listening } from "./adapter-load-tasks.ts";

const requestsKept = 1_000;

const vendor = await TestVendor.start();
// Its record of requests is for tests that look at it.
setInterval(() => vendor.requests.splice(0, vendor.requests.length - requestsKept), 1_000).unref();
const listening: Listening = { port: Number(new URL(vendor.origin).port) };
process.send?.(listening);
process.on("disconnect", () => process.exit(0));
