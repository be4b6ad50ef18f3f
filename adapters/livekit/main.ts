/** The process dhp-adapter-livekit. */
import { runAdapter } from "../../services/adapter-host/run-adapter.ts";
import { livekitAdapter } from "./adapter.ts";

await runAdapter(livekitAdapter);
