import { webcrypto } from "node:crypto";

import type * as X509 from "@peculiar/x509";

/** A certificate authority made for one test, and what it signed. PEM texts. */
export interface TestAuthority {
  readonly ca: string;
  /** A certificate for 127.0.0.1 and localhost. */
  issue(commonName: string): Promise<{ readonly cert: string; readonly key: string }>;
}

/** Makes a new authority; valid for a day. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const x509 = await loadX509();
  const keys = await createKeys();
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=test authority",
    keys,
    signingAlgorithm,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  return {
    ca: authority.toString("pem"),
    issue: async (commonName) => {
      const leafKeys = await createKeys();
      const leaf = await x509.X509CertificateGenerator.create({
        subject: `CN=${commonName}`,
        issuer: authority.subject,
        publicKey: leafKeys.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm,
        notBefore: new Date(Date.now() - dayMs),
        notAfter: new Date(Date.now() + dayMs),
        extensions: [
          new x509.SubjectAlternativeNameExtension([
            { type: "ip", value: "127.0.0.1" },
            { type: "dns", value: "localhost" },
          ]),
        ],
      });
      const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", leafKeys.privateKey);
      return { cert: leaf.toString("pem"), key: x509.PemConverter.encode(pkcs8, "PRIVATE KEY") };
    },
  };
}

/**
 * The library's dependency injection refuses to load without the Reflect metadata proposal, which
 * it then hardly uses: a map is enough of it.
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

function createKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
}

const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };
const dayMs = 24 * 60 * 60_000;
