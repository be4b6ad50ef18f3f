/** LiveKit's bearer tokens: a JSON Web Token per call, good for a minute and for one thing only. */
import { SignJWT } from "jose";

import { systemClock } from "../../services/process/clock.ts";

/** What a token allows; see LiveKit's VideoGrant. */
export interface RoomGrants {
  readonly roomCreate?: boolean;
  readonly roomList?: boolean;
  readonly roomAdmin?: boolean;
  /** The room that roomAdmin is for. */
  readonly room?: string;
}

const lifetimeSeconds = 60;
/** For clocks that differ: the server accepts a token from "now" on. */
const backdateSeconds = 10;

/** Signed with HS256. `apiSecret` appears in nothing but the signature. */
export function accessToken(
  apiKey: string,
  apiSecret: string,
  grants: RoomGrants,
): Promise<string> {
  const nowSeconds = Math.floor(systemClock.now() / 1000);
  return new SignJWT({ video: { ...grants } })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(apiKey)
    .setNotBefore(nowSeconds - backdateSeconds)
    .setExpirationTime(nowSeconds + lifetimeSeconds)
    .sign(new TextEncoder().encode(apiSecret));
}
