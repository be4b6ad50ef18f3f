import { homedir } from "node:os";
import { join } from "node:path";

/** Environment variables by name; an absent one is undefined. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the local control plane takes from the environment. */
export interface DevClusterOptions {
  /** Where built programs are kept: $XDG_CACHE_HOME or ~/.cache, below it our own folder. */
  readonly cacheFolder: string;
  /** Handed to the programs we start: Go wants its proxy settings, kubectl edit its editor. */
  readonly environment: Environment;
}

/** Reads the options once; the only place of this folder that looks at the environment. */
export function readDevClusterOptions(environment: Environment = process.env): DevClusterOptions {
  const cacheHome = environment["XDG_CACHE_HOME"];
  const base =
    cacheHome !== undefined && cacheHome.startsWith("/") ? cacheHome : join(homedir(), ".cache");
  return { cacheFolder: join(base, "digital-human-provider"), environment: { ...environment } };
}
