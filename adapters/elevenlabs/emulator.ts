/**
 * ElevenLabs' agents API on this machine: HTTPS with an authority of its own, faults on request, and
 * a record of who called what. Everything it cannot know of the vendor is a setting
 * (emulator/settings.ts); the port behind the scenes takes the words of every vendor
 * (services/vendor-emulator/fault-words.ts) and scripts of its own (emulator/script-routes.ts).
 */
import { startVendorEmulator } from "../../services/vendor-emulator/emulator.ts";
import type {
  VendorEmulator,
  VendorEmulatorOptions,
} from "../../services/vendor-emulator/emulator.ts";
import type { OwnFaultRoutes } from "../../services/vendor-emulator/fault-server.ts";
import { AgentsModel } from "./emulator/agents-model.ts";
import { Director } from "./emulator/director.ts";
import { scriptRoutes } from "./emulator/script-routes.ts";
import { permissions, World } from "./emulator/world.ts";

/** A key that is good in workspace "global" from the start; scripts add others and revoke it. */
export const emulatorApiKey = "sk_emulator_key_of_the_first_user";

export type EmulatorOptions = Pick<VendorEmulatorOptions, "port" | "faultPort" | "answerMs">;
export type Emulator = VendorEmulator;

export function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { model, ownRoutes } = emulated();
  return startVendorEmulator(model, { ...options, ownRoutes });
}

/** A fresh vendor, and what its port behind the scenes takes beside the words of every vendor. */
export function emulated(): { readonly model: AgentsModel; readonly ownRoutes: OwnFaultRoutes } {
  const world = new World();
  world.addKey({ apiKey: emulatorApiKey, userId: "user-1", workspace: "global", permissions });
  const director = new Director(world);
  return { model: new AgentsModel(world, director), ownRoutes: scriptRoutes(world, director) };
}
