/** Serves ProviderAPI for ElevenLabs; `node adapters/elevenlabs/main.ts --help` names the options. */
import { runAdapter } from "../../services/adapter-host/run-adapter.ts";
import { createElevenLabsAdapter } from "./adapter.ts";

await runAdapter(createElevenLabsAdapter());
