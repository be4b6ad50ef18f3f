/** With TLS nobody else is served; who is served is told in operations.ts. */
import { createTestAuthority, testTlsFiles } from "../../../services/contract/test-certificates.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { shared } from "../core/shared-subjects.ts";
import { describeReply } from "../core/wire-client.ts";

export const tlsCases: readonly ConformanceCase[] = [
  {
    name: "tls/strangers-are-kept-out",
    promise: "with TLS, a client without a certificate, or with another authority's, is not served",
    checks: ["rule:tls"],
    needs: [
      {
        kind: "trait",
        what: "a run over TLS with a client certificate",
        isSo: ({ wire }) => wire.tls?.cert !== undefined,
      },
    ],
    fix: "ask for client certificates, and verify them against the one authority that you are given",
    run: async (bench) => {
      const { subject } = await shared(bench);
      const ca = bench.wire.tls?.ca ?? unmet("TLS", "there is none");
      const authority = await createTestAuthority("nobody's authority");
      const files = testTlsFiles(await authority.issue(["conformance"]), authority.pem);
      const { certFile: cert, keyFile: key } = files;
      try {
        for (const tls of [{ ca }, { ca, cert, key }]) {
          const stranger = bench.connect({ tls });
          try {
            const reply = await subject.through(stranger).describe();
            expect(reply.kind === "failure", "no answer for a stranger", () =>
              describeReply(reply),
            );
          } finally {
            stranger.close();
          }
        }
      } finally {
        files.remove();
      }
      await subject.answered(subject.describe(), "OK for who is known");
    },
  },
];
