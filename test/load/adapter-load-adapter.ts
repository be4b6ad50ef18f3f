/** The adapter of the smallest vendor, as a process like any other adapter's. */
import { runAdapter } from "../../services/adapter-host/run-adapter.ts";
import { testAdapter } from "../../services/adapter-host/test-vendor.ts";

await runAdapter(testAdapter());
