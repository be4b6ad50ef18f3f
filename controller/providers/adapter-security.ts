/** How the connection to an adapter is secured: what its class asks for, and what this process has. */
import type { ClientTls } from "../../services/contract/connection.ts";
import { isLoopbackTarget } from "../../services/contract/loopback.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { AdapterAddress } from "../resource/provider-class.ts";

export interface SecurityOptions {
  /** The files of --adapter-tls-folder; absent without that option. */
  readonly tlsFiles: ClientTls | undefined;
  readonly allowPlaintext: boolean;
}

/**
 * The TLS to connect with; undefined: plaintext, as the class wants it. A class that asks for TLS
 * never gets plaintext instead, not even on loopback.
 *
 * @throws ProviderError (FAILED_PRECONDITION, nothing sent) that says what to change where
 */
export function adapterSecurity(
  { address, isTls, serverName }: AdapterAddress,
  { tlsFiles, allowPlaintext }: SecurityOptions,
): ClientTls | undefined {
  if (isTls) {
    if (tlsFiles !== undefined) {
      return serverName === undefined ? tlsFiles : { ...tlsFiles, serverName };
    }
    throw refusal(
      `the class asks for mutual TLS with adapter "${address}", and the controller was started without --adapter-tls-folder`,
    );
  }
  if (allowPlaintext || isLoopbackTarget(address)) return undefined;
  throw refusal(
    `the class wants plaintext to adapter "${address}", which is not loopback: make a class with adapter.tls {mode: Mutual}, or start the controller with --allow-plaintext-adapters`,
  );
}

function refusal(message: string): ProviderError {
  return ProviderError.foreign("FAILED_PRECONDITION", message, undefined, {
    outcome: "NOT_APPLIED",
  });
}
