import { createSecureContext } from "node:tls";

import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import type { ApiAccess, ApiAccessSource, TlsMaterial } from "./kube-config.ts";

export interface ApiAccessCacheOptions {
  readonly source: ApiAccessSource;
  readonly clock: Clock;
  readonly log: Log;
  /** How old read access may be before files are looked at again. */
  readonly refreshMs: number;
}

/**
 * Hands out the current access, reading the files behind it again when it is old or was refused.
 * Reading happens on use, so an idle process has no timer and no file watch to close. Access that
 * cannot be read or does not fit together (a certificate just replaced, its key not yet) is
 * skipped for the last good one.
 */
export class ApiAccessCache {
  readonly #options: ApiAccessCacheOptions;
  #current: ApiAccess | undefined;
  #readAtMs = 0;
  #reading: { readonly isForced: boolean; readonly access: Promise<ApiAccess> } | undefined;

  constructor(options: ApiAccessCacheOptions) {
    this.#options = options;
  }

  /** @throws Error when access was never readable */
  async current(): Promise<ApiAccess> {
    const { clock, refreshMs } = this.#options;
    if (this.#current !== undefined && clock.monotonicMs() - this.#readAtMs < refreshMs) {
      return this.#current;
    }
    return this.#readOnce(false);
  }

  /**
   * Access to try after `refused` got a 401. Many calls may be refused at once: the files are read
   * once for all of them.
   */
  async afterRefusal(refused: ApiAccess): Promise<ApiAccess> {
    if (this.#current !== undefined && this.#current !== refused) return this.#current;
    return this.#readOnce(true);
  }

  async #readOnce(isForced: boolean): Promise<ApiAccess> {
    // A refused credential is not cured by a read that may answer from a cache.
    if (isForced && this.#reading !== undefined && !this.#reading.isForced) {
      await this.#reading.access.catch(() => undefined);
    }
    this.#reading ??= {
      isForced,
      access: this.#read(isForced).finally(() => {
        this.#reading = undefined;
      }),
    };
    return this.#reading.access;
  }

  async #read(isForced: boolean): Promise<ApiAccess> {
    const { source, clock, log } = this.#options;
    const last = this.#current;
    try {
      const access = await source.read(isForced);
      if (last === undefined || !isSameConnection(last, access)) checkTls(access.tls);
      if (last === undefined || isForced || !isSameAccess(last, access)) this.#current = access;
    } catch (error) {
      if (last === undefined) throw error;
      log.warn({ error }, "cannot read API server access, keeping the last one");
    }
    this.#readAtMs = clock.monotonicMs();
    if (this.#current === undefined) throw new Error("no API server access");
    return this.#current;
  }
}

/** True when both ask for the same connection; tokens travel per call and need no new one. */
export function isSameConnection(a: ApiAccess, b: ApiAccess): boolean {
  return (
    a.serverUrl === b.serverUrl &&
    a.tls.ca === b.tls.ca &&
    a.tls.cert === b.tls.cert &&
    a.tls.key === b.tls.key &&
    a.tls.servername === b.tls.servername &&
    a.tls.isServerVerified === b.tls.isServerVerified
  );
}

function isSameAccess(a: ApiAccess, b: ApiAccess): boolean {
  return isSameConnection(a, b) && JSON.stringify(a.headers) === JSON.stringify(b.headers);
}

/** Throws where certificate and key do not belong together or a text is no PEM. */
function checkTls(tls: TlsMaterial): void {
  createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
}
