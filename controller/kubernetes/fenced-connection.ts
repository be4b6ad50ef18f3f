import type { ApiRequest, Connection } from "./connection.ts";
import type { Leadership } from "./leadership.ts";

/**
 * A connection for a leader's calls: none is sent once the leadership is lost, and those under way
 * are cancelled with it. Calls that bring a signal of their own are cancelled by that alone.
 */
export function fencedConnection(
  connection: Pick<Connection, "request">,
  leadership: Pick<Leadership, "requireHeld" | "signal">,
): Pick<Connection, "request"> {
  return {
    request: async (request: ApiRequest) => {
      leadership.requireHeld();
      return connection.request({ ...request, signal: request.signal ?? leadership.signal });
    },
  };
}
