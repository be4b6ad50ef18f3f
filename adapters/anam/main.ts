/** The process dhp-adapter-anam. */
import { runAdapter } from "../../services/adapter-host/run-adapter.ts";
import { anamAdapter } from "./adapter.ts";

await runAdapter(anamAdapter);
