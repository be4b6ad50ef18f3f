/**
 * grpc-js waits for ever for a peer that accepts a connection and then says nothing, and forgets the
 * socket when its channel closes meanwhile. These credentials end such a socket.
 */
import type { Socket } from "node:net";
import { ChannelCredentials } from "@grpc/grpc-js";
import type { experimental } from "@grpc/grpc-js";

import type { Clock, Timer } from "../process/clock.ts";

export interface HandshakeTimeoutOptions {
  /** From the TCP connection to the first word of HTTP/2. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

type ConnectorArguments = Parameters<ChannelCredentials["_createSecureConnector"]>;

/** The same credentials, with a limit on the time that a handshake takes. */
export class HandshakeTimeoutCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #options: HandshakeTimeoutOptions;

  constructor(inner: ChannelCredentials, options: HandshakeTimeoutOptions) {
    super();
    this.#inner = inner;
    this.#options = options;
  }

  _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  _createSecureConnector(...args: ConnectorArguments): experimental.SecureConnector {
    return new TimedConnector(this.#inner._createSecureConnector(...args), this.#options);
  }
}

/** One connection on its way; `talking` is where HTTP/2 is spoken: the TLS socket, or the raw one. */
interface Attempt {
  readonly raw: Socket;
  readonly timer: Timer;
  talking: Socket | undefined;
}

class TimedConnector implements experimental.SecureConnector {
  readonly #inner: experimental.SecureConnector;
  readonly #options: HandshakeTimeoutOptions;
  readonly #attempts = new Set<Attempt>();

  constructor(inner: experimental.SecureConnector, options: HandshakeTimeoutOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  async connect(raw: Socket): Promise<experimental.SecureConnectResult> {
    const { clock, timeoutMs } = this.#options;
    const timer = clock.setTimer(timeoutMs, () => this.#endIfSilent(attempt));
    const attempt: Attempt = { raw, timer, talking: undefined };
    this.#attempts.add(attempt);
    // The library may have stopped listening by the time the socket is ended with an error.
    raw.on("error", () => undefined);
    raw.once("close", () => {
      timer.cancel();
      this.#attempts.delete(attempt);
    });
    const result = await this.#inner.connect(raw);
    attempt.talking = result.socket;
    return result;
  }

  waitForReady(): Promise<void> {
    return this.#inner.waitForReady();
  }

  getCallCredentials(): ReturnType<experimental.SecureConnector["getCallCredentials"]> {
    return this.#inner.getCallCredentials();
  }

  destroy(): void {
    this.#inner.destroy();
    // The channel has gone: a connection that is not made yet will serve nobody.
    for (const attempt of this.#attempts) this.#endIfSilent(attempt);
  }

  #endIfSilent({ raw, timer, talking }: Attempt): void {
    timer.cancel();
    // A TLS socket counts what came decrypted: nothing yet means no HTTP/2 yet.
    if (talking !== undefined && talking.bytesRead > 0) return;
    raw.destroy(new Error(`no HTTP/2 within ${this.#options.timeoutMs} ms`));
  }
}
