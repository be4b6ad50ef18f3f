/**
 * TLS material in files that change under a running process, as Kubernetes mounts Secrets.
 *
 * Instead of the library's own file watcher because that one takes the certificates away while a
 * file is missing or half written; this one checks that certificate, key and authority fit together
 * and keeps the last good set until a new good one is complete.
 */
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { experimental } from "@grpc/grpc-js";

import type { Clock, Timer } from "../process/clock.ts";
import type { Log } from "../process/log.ts";

/** Paths of PEM files. */
export interface CertificatePaths {
  readonly certFile?: string;
  readonly keyFile?: string;
  /** The authority that the peer's certificate must come from. */
  readonly caFile: string;
}

export interface CertificateFilesOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly refreshMs: number;
}

interface Material {
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
  readonly ca: Buffer;
}

const fileBytesMax = 1 << 20;

type CaListener = Parameters<experimental.CertificateProvider["addCaCertificateListener"]>[0];
type IdentityListener = Parameters<
  experimental.CertificateProvider["addIdentityCertificateListener"]
>[0];

/** See the file comment. Feeds grpc-js; stops reading when closed. */
export class CertificateFiles implements experimental.CertificateProvider {
  readonly #paths: CertificatePaths;
  readonly #options: CertificateFilesOptions;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();
  #material: Material;
  #lastProblem = "";
  #timer: Timer | undefined;

  /** Reads at once; throws when the files are missing or do not fit together. */
  constructor(paths: CertificatePaths, options: CertificateFilesOptions) {
    this.#paths = paths;
    this.#options = options;
    this.#material = readMaterial(paths);
    this.#timer = this.#schedule();
  }

  /** True when there is a certificate of our own to show, not only an authority to trust. */
  get hasIdentity(): boolean {
    return this.#paths.certFile !== undefined;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#caListeners.clear();
    this.#identityListeners.clear();
  }

  /** Reads the files now and hands a changed, good set to the connections made from here on. */
  refresh(): void {
    try {
      const material = readMaterial(this.#paths);
      this.#lastProblem = "";
      if (isSame(material, this.#material)) return;
      this.#material = material;
      for (const listener of this.#caListeners) this.#tellCa(listener);
      for (const listener of this.#identityListeners) this.#tellIdentity(listener);
      this.#options.log.info({ files: this.#paths }, "certificates reloaded");
    } catch (error) {
      // Half of a rotation, most likely: the set in use stays, and one line a problem is enough.
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#lastProblem) {
        this.#options.log.warn({ files: this.#paths, error }, "certificates not reloaded");
      }
      this.#lastProblem = problem;
    }
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    // Not at once: the library takes note of the credentials only after it has added its listener.
    queueMicrotask(() => this.#tellCa(listener));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    queueMicrotask(() => this.#tellIdentity(listener));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
  }

  #tellCa(listener: CaListener): void {
    if (this.#caListeners.has(listener)) listener({ caCertificate: this.#material.ca });
  }

  #tellIdentity(listener: IdentityListener): void {
    if (!this.#identityListeners.has(listener)) return;
    const { cert, key } = this.#material;
    listener(
      cert === undefined || key === undefined ? null : { certificate: cert, privateKey: key },
    );
  }

  #schedule(): Timer {
    return this.#options.clock.setTimer(this.#options.refreshMs, () => {
      this.refresh();
      if (this.#timer !== undefined) this.#timer = this.#schedule();
    });
  }
}

function readMaterial(paths: CertificatePaths): Material {
  if ((paths.certFile === undefined) !== (paths.keyFile === undefined)) {
    throw new Error("cannot use TLS: certificate and key go together");
  }
  const material = {
    cert: paths.certFile === undefined ? undefined : readPem(paths.certFile),
    key: paths.keyFile === undefined ? undefined : readPem(paths.keyFile),
    ca: readPem(paths.caFile),
  };
  try {
    // Throws when something is no PEM, or when the key is another certificate's.
    createSecureContext({
      ca: material.ca,
      ...(material.cert === undefined ? {} : { cert: material.cert }),
      ...(material.key === undefined ? {} : { key: material.key }),
    });
  } catch (cause) {
    throw new Error(
      `cannot use TLS files ${Object.values(paths).join(", ")}: ${cause instanceof Error ? cause.message : "unreadable"}`,
      { cause },
    );
  }
  return material;
}

function readPem(path: string): Buffer {
  const { size } = statSync(path);
  if (size > fileBytesMax) throw new Error(`cannot use "${path}" for TLS: ${size} bytes`);
  return readFileSync(path);
}

function isSame(left: Material, right: Material): boolean {
  return (
    left.ca.equals(right.ca) &&
    sameOrAbsent(left.cert, right.cert) &&
    sameOrAbsent(left.key, right.key)
  );
}

function sameOrAbsent(left: Buffer | undefined, right: Buffer | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.equals(right);
}
