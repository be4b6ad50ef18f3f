/** The process dhp-adapter-acme. */
import { runAdapter } from "../../services/adapter-host/run-adapter.ts";
import { acmeAdapter } from "./adapter.ts";

await runAdapter(acmeAdapter);
