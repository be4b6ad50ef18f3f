/** List: all that carries our stamp, of one owner or of all, each once. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { expectInstance } from "../core/instance-expectations.ts";
import { expectListed, fiveListed, listAll, listPage } from "../core/listing.ts";
import { settled } from "../core/settled.ts";
import { sharedForeign } from "../core/shared-subjects.ts";
import { describeReply } from "../core/wire-client.ts";

const canList: Need = { kind: "capability", name: "LIST_BY_OWNER" };
const badToken = { reasons: ["INVALID_FIELD"], fields: ["page_token"] };

/** The token after the first page of the five, which are more than a page of one or two holds. */
async function firstToken(bench: Bench, ownerCluster: string, pageSize: number): Promise<string> {
  const reply = await listPage(bench, { ownerCluster, pageSize });
  const token = reply.kind === "answer" ? reply.answer.nextPageToken : "";
  const came = (): string => (reply.kind === "answer" ? "there is none" : describeReply(reply));
  expect(token !== "", "a next_page_token, since there is more", came);
  return token;
}

/** Slips of the pen: one character another, one less, one more. */
function tampered(token: string): readonly string[] {
  const at = Math.floor(token.length / 2);
  const other = token[at] === "A" ? "B" : "A";
  return [token.slice(0, at) + other + token.slice(at + 1), token.slice(0, -2), `${token}AA`];
}

export const listCases: readonly ConformanceCase[] = [
  {
    name: "list/shows-one-owners-alone",
    promise: "with owner_cluster List shows that owner's instances, each once, stamped and whole",
    checks: ["rpc:list", "list:stamp", "list:state"],
    needs: [canList],
    fix: "filter by the cluster part of the stamp; answer stamp and owner of each instance",
    run: async (bench) => {
      const { cluster, subjects } = await fiveListed(bench);
      await sharedForeign(bench);
      const found = await settled(bench, async () => {
        const instances = await listAll(bench, { ownerCluster: cluster });
        expectListed(instances, subjects);
        return instances;
      });
      for (const subject of subjects) {
        const instance = found.find(({ stamp }) => stamp === subject.stamp);
        if (instance === undefined) continue;
        expectInstance(instance, subject);
        const { instance: read } = await subject.answered(subject.describe(), "the same instance");
        const isSame = read?.providerId === instance.providerId && read?.realm === instance.realm;
        expect(isSame, `what Describe says, ${read?.providerId}`, () => instance.providerId);
      }
    },
  },
  {
    name: "list/shows-all-owners",
    promise:
      "without owner_cluster List shows what carries our stamp, whoever owns it, and nothing else",
    checks: ["rpc:list", "list:stamp"],
    needs: [canList],
    fix: "leave out what has no stamp of the contract's form; do not filter by an owner",
    run: async (bench) => {
      const { subjects } = await fiveListed(bench);
      const { subject: foreign } = await sharedForeign(bench);
      await settled(bench, async () => {
        const stamps = (await listAll(bench, { pageSize: 1_000 })).map(({ stamp }) => stamp);
        for (const { key, stamp } of [...subjects, foreign]) {
          const times = stamps.filter((one) => one === stamp).length;
          expect(times === 1, `${key} once`, () => `${times} times`);
        }
        const wrong = stamps.find((stamp) => !/^dhp-[a-z2-7]{16}-[a-z2-7]{8}$/.test(stamp));
        expect(wrong === undefined, "stamps of the contract's form", () => `"${wrong}"`);
      });
    },
  },
  {
    name: "list/pages-of-every-size",
    promise: "with each page_size the pages together show each instance once",
    checks: ["rpc:list", "rule:bounds"],
    needs: [canList],
    fix: "go on exactly behind the last instance that a page showed; read above 1000 as 1000",
    run: async (bench) => {
      const { cluster, subjects } = await fiveListed(bench);
      for (const pageSize of [1, 2, 4, 5, 6, 1_000, 1_001, 2_147_483_647]) {
        await settled(bench, async () =>
          expectListed(await listAll(bench, { ownerCluster: cluster, pageSize }), subjects),
        );
      }
    },
  },
  {
    name: "list/page-size-may-change",
    promise: "a token goes on where its page ended, also with another page_size",
    checks: ["rpc:list"],
    needs: [canList],
    fix: "keep the place in the token, and nothing of the page's size",
    run: async (bench) => {
      const { cluster: ownerCluster, subjects } = await fiveListed(bench);
      await settled(bench, async () => {
        const found: Instance[] = [];
        let pageToken = "";
        for (const pageSize of [2, 100, 100]) {
          const reply = await listPage(bench, { ownerCluster, pageSize, pageToken });
          if (reply.kind === "failure") unmet("a page of the list", describeReply(reply));
          found.push(...reply.answer.instances);
          pageToken = reply.answer.nextPageToken;
          if (pageToken === "") break;
        }
        expectListed(found, subjects);
      });
    },
  },
  {
    name: "list/bad-tokens-are-refused",
    promise:
      "a page_token that was not given, or was changed, is INVALID_ARGUMENT, never a wrong page",
    checks: ["rpc:list", "error:bad-value"],
    needs: [canList],
    fix: "put a checksum into the token, and check it before you read the rest",
    run: async (bench) => {
      const { cluster: ownerCluster } = await fiveListed(bench);
      const token = await firstToken(bench, ownerCluster, 1);
      for (const pageToken of ["not a token", "0", "{}", "AAAA", ...tampered(token)]) {
        refused(await listPage(bench, { ownerCluster, pageSize: 1, pageToken }), badToken);
      }
    },
  },
  {
    name: "list/tokens-of-other-questions-are-refused",
    promise: "a page_token of another owner's list is INVALID_ARGUMENT",
    checks: ["rpc:list", "error:bad-value"],
    needs: [canList],
    fix: "bind the token to owner_cluster and target",
    run: async (bench) => {
      const { cluster } = await fiveListed(bench);
      const pageToken = await firstToken(bench, cluster, 1);
      const { otherRealm } = bench.parameters;
      for (const other of [
        { ownerCluster: bench.otherCluster },
        {},
        ...(otherRealm === undefined ? [] : [{ ownerCluster: cluster, target: otherRealm }]),
      ]) {
        refused(await listPage(bench, { ...other, pageSize: 1, pageToken }), badToken);
      }
    },
  },
  {
    name: "list/negative-page-size-is-refused",
    promise: "a negative page_size is INVALID_ARGUMENT",
    checks: ["rpc:list", "error:bad-value"],
    needs: [canList],
    fix: "refuse page_size below 0 with its path",
    run: async (bench) => {
      for (const pageSize of [-1, -2_147_483_648]) {
        const fields = ["page_size"];
        refused(await listPage(bench, { pageSize }), { reasons: ["INVALID_FIELD"], fields });
      }
    },
  },
  {
    name: "list/comings-and-goings-shift-nothing",
    promise: "while instances come and go between pages, those that stay are listed exactly once",
    checks: ["rpc:list"],
    needs: [canList, { kind: "capability", name: "DELETE" }],
    fix: "let the token name the last instance that was shown, not a count or page number",
    run: async (bench) => {
      for (const pageSize of [1, 2]) {
        const cluster = `${bench.cluster}-churn-${pageSize}`;
        const make = (name: string): ReturnType<Bench["subject"]> =>
          bench.subject(`${name}-${pageSize}`, { owner: { cluster, uid: `uid-${name}` } });
        const [first, last, coming] = [make("going-first"), make("going-last"), make("coming")];
        const subjects = ["stays-a", "stays-b", "stays-c", "stays-d"].map(make);
        // Old ones or young ones: whichever the pages begin with, one that goes is among them.
        for (const subject of [first, ...subjects, last]) await subject.converge();
        let pages = 0;
        const found = await listAll(bench, { ownerCluster: cluster, pageSize }, async () => {
          pages += 1;
          if (pages !== 1) return;
          await coming.converge();
          await Promise.all([first.remove(), last.remove()]);
        });
        const stays = new Set(subjects.map(({ stamp }) => stamp));
        expectListed(
          found.filter(({ stamp }) => stays.has(stamp)),
          subjects,
        );
        await Promise.all([...subjects, coming].map((subject) => subject.remove()));
      }
    },
  },
  {
    name: "list/nobodys-list-is-empty",
    promise: "an owner without instances has an empty list, and that is no error",
    checks: ["rpc:list"],
    needs: [canList],
    fix: "answer no instances, an empty token at the end, and the realm",
    run: async (bench) => {
      const found = await listAll(bench, { ownerCluster: `${bench.runId}-nobody` });
      expectListed(found, []);
    },
  },
  {
    name: "list/empty-owner-is-not-everybody",
    promise: "an owner_cluster that is there and empty is INVALID_ARGUMENT, not a list of all",
    checks: ["rpc:list", "rule:versions", "error:bad-value"],
    needs: [canList],
    fix: "look whether owner_cluster is present, not whether it is empty",
    run: async (bench) => {
      const fields = ["owner_cluster"];
      refused(await listPage(bench, { ownerCluster: "" }), { reasons: ["INVALID_FIELD"], fields });
    },
  },
  {
    name: "list/without-capability",
    promise: "without LIST_BY_OWNER the RPC is UNIMPLEMENTED (UNSUPPORTED)",
    checks: ["rpc:list", "error:version", "list:capability"],
    needs: [{ kind: "no-capability", name: "LIST_BY_OWNER" }],
    fix: "answer UNIMPLEMENTED with reason UNSUPPORTED: an empty list would say that nothing is there",
    run: async (bench) => {
      const codes = ["UNIMPLEMENTED"];
      refused(await listPage(bench, {}), { reasons: ["UNSUPPORTED"], codes });
    },
  },
];
