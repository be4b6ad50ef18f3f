/** Mutual TLS with either client: who is not trusted, or trusts not, hears nothing and changes nothing. */
import { create } from "@bufbuild/protobuf";

import { EnsureResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { createTestAuthority, testTlsFiles } from "../../services/contract/test-certificates.ts";
import type { TestAuthority, TestTlsFiles } from "../../services/contract/test-certificates.ts";
import type { TlsFiles } from "../conformance/core/wire-client.ts";
import { named, wireRule, wordsOfBroken } from "./wire-rule.ts";
import type { Expected, WireRun } from "./wire-rule.ts";

async function filesOf(
  run: WireRun,
  authority: TestAuthority,
  own: { readonly trusted?: string; readonly names?: readonly string[] } = {},
): Promise<TestTlsFiles> {
  const names = own.names ?? ["127.0.0.1", "localhost"];
  const files = testTlsFiles(await authority.issue(names), own.trusted ?? authority.pem);
  run.closeAtEnd(() => files.remove());
  return files;
}

function shown({ caFile, certFile, keyFile }: TestTlsFiles): TlsFiles {
  return { ca: caFile, cert: certFile, key: keyFile };
}

/** What an Ensure hears at a server with `serverFiles`, and how often its handler ran. */
async function ensureAt(
  run: WireRun,
  serverFiles: TestTlsFiles | undefined,
  clientTls: TlsFiles | undefined,
): Promise<unknown> {
  let calls = 0;
  const tls = serverFiles && {
    certFile: serverFiles.certFile,
    keyFile: serverFiles.keyFile,
    caFile: serverFiles.caFile,
  };
  const ensure = () => {
    calls += 1;
    return Promise.resolve(create(EnsureResponseSchema));
  };
  const { port } = await run.serve({ ensure }, tls === undefined ? {} : { tls });
  const heard = await run.connect(port, clientTls).ensure(named, { deadlineMs: 8_000 });
  return [heard.kind === "answer" ? "answered" : wordsOfBroken(run.library, heard), calls];
}

const unheard: Expected = {
  "grpc-js": [["UNAVAILABLE", undefined, "NOT_APPLIED"], 0],
  "connect-node": [[undefined, undefined], 0],
  because: "our client knows that the change was not sent and says so",
};

wireRule("peers that trust each other talk", { both: ["answered", 1] }, async (run) => {
  const authority = await createTestAuthority("one");
  return ensureAt(run, await filesOf(run, authority), shown(await filesOf(run, authority)));
});

wireRule(
  "a server of an authority that the client does not trust is not talked to",
  unheard,
  async (run) => {
    const [ours, theirs] = [await createTestAuthority("one"), await createTestAuthority("two")];
    const server = await filesOf(run, theirs, { trusted: ours.pem });
    return ensureAt(run, server, shown(await filesOf(run, ours)));
  },
);

wireRule("a server by another name is not talked to", unheard, async (run) => {
  const authority = await createTestAuthority("one");
  const server = await filesOf(run, authority, { names: ["adapter.example.com"] });
  return ensureAt(run, server, shown(await filesOf(run, authority)));
});

wireRule("a client without a certificate hears nothing", unheard, async (run) => {
  const authority = await createTestAuthority("one");
  const { caFile } = await filesOf(run, authority);
  return ensureAt(run, await filesOf(run, authority), { ca: caFile });
});

wireRule("a client with a stranger's certificate hears nothing", unheard, async (run) => {
  const [ours, theirs] = [await createTestAuthority("one"), await createTestAuthority("two")];
  const client = await filesOf(run, theirs, { trusted: ours.pem });
  return ensureAt(run, await filesOf(run, ours), shown(client));
});

wireRule("a client in plaintext at a server with TLS hears nothing", unheard, async (run) => {
  const authority = await createTestAuthority("one");
  return ensureAt(run, await filesOf(run, authority), undefined);
});

wireRule("a client with TLS at a server in plaintext hears nothing", unheard, async (run) => {
  const authority = await createTestAuthority("one");
  return ensureAt(run, undefined, shown(await filesOf(run, authority)));
});
