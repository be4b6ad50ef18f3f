/** Certificates for tests over real TLS: an authority of one's own, and what it signs. */
import { webcrypto } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as X509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 24 * 3_600_000;

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** Signs certificates; `pem` is what others trust. */
export interface TestAuthority {
  readonly pem: string;
  /** A certificate for these DNS names and addresses. */
  issue(names: readonly string[]): Promise<PemPair>;
}

export async function createTestAuthority(name: string): Promise<TestAuthority> {
  const x509 = await loadX509();
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=${name}`,
    ...validity(),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
  });
  return {
    pem: certificate.toString("pem"),
    issue: (names) => issue({ certificate, keys }, names),
  };
}

/** A folder of PEM files that is replaced file by file, as a rotation does. */
export interface TestTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  write(files: { readonly pair?: PemPair; readonly ca?: string }): void;
  remove(): void;
}

export function testTlsFiles(pair: PemPair, ca: string): TestTlsFiles {
  const folder = mkdtempSync(join(tmpdir(), "dhp-tls-"));
  const pathOf = (name: string): string => join(folder, name);
  const replace = (name: string, text: string): void => {
    writeFileSync(pathOf(`${name}.new`), text, { mode: 0o600 });
    renameSync(pathOf(`${name}.new`), pathOf(name));
  };
  const files: TestTlsFiles = {
    certFile: pathOf("tls.crt"),
    keyFile: pathOf("tls.key"),
    caFile: pathOf("ca.crt"),
    write: (changed) => {
      if (changed.pair !== undefined) {
        replace("tls.crt", changed.pair.cert);
        replace("tls.key", changed.pair.key);
      }
      if (changed.ca !== undefined) replace("ca.crt", changed.ca);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
  files.write({ pair, ca });
  return files;
}

async function issue(
  issuer: { readonly certificate: X509.X509Certificate; readonly keys: webcrypto.CryptoKeyPair },
  names: readonly string[],
): Promise<PemPair> {
  const x509 = await loadX509();
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: `CN=${names[0] ?? "nobody"}`,
    issuer: issuer.certificate.subject,
    ...validity(),
    publicKey: keys.publicKey,
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.SubjectAlternativeNameExtension(
        names.map((name) => ({ type: /^[\d.]+$|:/u.test(name) ? "ip" : "dns", value: name })),
      ),
    ],
  });
  const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { cert: certificate.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
}

/**
 * The library's dependency injection refuses to load without the Reflect metadata proposal, of which
 * it uses next to nothing: a map is enough.
 */
async function loadX509(): Promise<typeof X509> {
  const metadata = new WeakMap<object, Map<unknown, unknown>>();
  const read = (key: unknown, target: object): unknown => metadata.get(target)?.get(key);
  Object.assign(Reflect, {
    getMetadata: read,
    getOwnMetadata: read,
    defineMetadata: (key: unknown, value: unknown, target: object) => {
      metadata.set(target, (metadata.get(target) ?? new Map()).set(key, value));
    },
  });
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

function validity(): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + dayMs) };
}

function serial(): string {
  // The first bit stays clear: a serial number is positive.
  return `01${Buffer.from(webcrypto.getRandomValues(new Uint8Array(8))).toString("hex")}`;
}
