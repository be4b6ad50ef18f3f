/**
 * What the port behind the scenes takes beside the words of every vendor:
 *
 *     POST /script    a step or a list of steps (script.ts); answers {"agentIds": [...]}
 *     GET  /world     {"agents", "settings", "faults", "nowMs"}: what is there now
 *     GET  /requests  {"requests", "dropped"}: who called what when, and what it changed
 */
import type { OwnFaultRoutes } from "../../../services/vendor-emulator/fault-server.ts";
import type { Director } from "./director.ts";
import { parseJson } from "./json-shapes.ts";
import { parseScript } from "./script.ts";
import type { World } from "./world.ts";

export function scriptRoutes(world: World, director: Director): OwnFaultRoutes {
  return (method, path, body) => {
    switch (`${method} ${path}`) {
      case "POST /script": {
        const json = parseJson(body);
        if (json === undefined) throw new Error("the script is no JSON");
        return { status: 200, body: { agentIds: director.run(parseScript(json)) } };
      }
      case "GET /world":
        return {
          status: 200,
          body: {
            agents: world.agents(),
            settings: world.settings,
            faults: director.pendingFaults,
            nowMs: world.now(),
          },
        };
      case "GET /requests":
        return {
          status: 200,
          body: { requests: world.requests.since(0), dropped: world.requests.dropped },
        };
      default:
        return undefined;
    }
  };
}
