/**
 * Acme's instances; see README.md. Everything in this folder that says "fill in" is a guess at a
 * common kind of API: put the vendor's own paths, fields and words in its place.
 */
import type {
  Adapter,
  FieldChange,
  FoundInstance,
  FoundPage,
  VendorCall,
  WantedInstance,
} from "../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { VendorRequest, VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { classifyAcme } from "./errors.ts";
import {
  foundInstance,
  parseCreatedId,
  parseInstance,
  parsePage,
  settingsBody,
  tagsWith,
  tagsWithout,
} from "./translate.ts";
import type { VendorInstance } from "./translate.ts";

/** Fill in: where instances live. */
const instancesPath = "/v1/instances";
const pageSize = 100;

export const acmeAdapter: Adapter = {
  info: {
    name: "acme",
    // Fill in: only what is true. Without DELETE nothing is created under deletionPolicy Delete.
    capabilities: [
      "UPDATE",
      "DELETE",
      "RELEASE",
      "ADOPT",
      "LIST_BY_OWNER",
      "BULK_HEALTH",
      "WATCH_HEALTH",
      "VALIDATE_ONLY",
    ],
    // Fill in: where the stamp is kept, in a field that lists show.
    stampPlace: "TAG",
    // Fill in: what reads are worth after a change. When nothing is documented, stay careful.
    visibilityLagMs: 5_000,
    areListsConsistent: false,
    // Fill in: names that spec.region may have; none: any.
    regions: [],
    // Fill in: spec.parameters. Values are texts; translate.ts says how each is written in JSON.
    parameterSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      additionalProperties: false,
      properties: {
        voice: {
          type: "string",
          pattern: "^[a-z0-9-]{1,64}$",
          description: "The voice, by the vendor's id.",
        },
        speed: {
          type: "string",
          // One form for one value: "1.0" would be drift against the vendor's 1 for ever.
          pattern: "^(0|[1-9][0-9]?)(\\.[0-9]?[1-9])?$",
          description: "How fast it speaks; 1 is normal. No zeros at the end.",
        },
      },
    },
    immutableFields: [],
    // Fill in: what one account may ask for in a second, and how long a change may take effect late.
    callsPerSecond: 10,
    mutationDeadlineMs: 10_000,
  },

  /**
   * Fill in: what names the account and place a call speaks for. Two endpoints that lead to the same
   * instances have to have one realm, two accounts two. Ask the vendor where only it knows.
   */
  async realm({ target }: VendorCall): Promise<string> {
    return `acme:${new URL(target.endpoint).host}/${target.account}`;
  },

  async read(call: VendorCall, id: string): Promise<FoundInstance | undefined> {
    if (!isId(id)) return undefined;
    const found = await unlessMissing(getInstance(call, id));
    return found && foundInstance(found);
  },

  async list(call: VendorCall, token: string | undefined): Promise<FoundPage> {
    const query = { limit: `${pageSize}`, ...(token === undefined ? {} : { cursor: token }) };
    const request = { method: "GET", path: instancesPath, query, isMutation: false } as const;
    const { instances, nextCursor } = parsePage((await send(call, request)).json);
    return {
      instances: instances.map(foundInstance),
      ...(nextCursor === undefined ? {} : { nextToken: nextCursor }),
    };
  },

  async create(call: VendorCall, wanted: WantedInstance): Promise<string> {
    const body = { ...settingsBody(wanted), tags: tagsWith(wanted.stamp, []) };
    const request = { method: "POST", path: instancesPath, body, isMutation: true } as const;
    return parseCreatedId((await send(call, request)).json);
  },

  async update(
    call: VendorCall,
    { id }: FoundInstance,
    wanted: WantedInstance,
    changes: readonly FieldChange[],
  ): Promise<void> {
    // Other people's tags stay; they are read at the last moment.
    const { tags } = await getInstance(call, id);
    const settings = changes.length > 0 ? settingsBody(wanted) : {};
    const body = { ...settings, tags: tagsWith(wanted.stamp, tags) };
    await send(call, { method: "PATCH", path: pathOf(id), body, isMutation: true });
  },

  async release(call: VendorCall, { id }: FoundInstance): Promise<void> {
    const { tags } = await getInstance(call, id);
    const body = { tags: tagsWithout(tags) };
    await send(call, { method: "PATCH", path: pathOf(id), body, isMutation: true });
  },

  async delete(call: VendorCall, { id }: FoundInstance): Promise<"deleted" | "absent"> {
    const request = { method: "DELETE", path: pathOf(id), isMutation: true } as const;
    return (await unlessMissing(send(call, request))) === undefined ? "absent" : "deleted";
  },

  classify: classifyAcme,
};

async function getInstance(call: VendorCall, id: string): Promise<VendorInstance> {
  const request = { method: "GET", path: pathOf(id), isMutation: false } as const;
  return parseInstance((await send(call, request)).json);
}

/** Fill in: how the vendor is told who asks. */
function send(call: VendorCall, request: VendorRequest): Promise<VendorResponse> {
  const key = call.credential["apiKey"] ?? "";
  if (!/^[\x21-\x7e]+$/.test(key)) {
    const message = `credential of account "${call.target.account}" has no usable field apiKey`;
    throw new ProviderError("BAD_CREDENTIAL", message, { outcome: "NOT_APPLIED" });
  }
  return call.http.send({ ...request, headers: { authorization: `Bearer ${key}` } });
}

/** `undefined` where the vendor attests that this very instance does not exist. */
async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ProviderError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  }
}

function pathOf(id: string): string {
  if (!isId(id)) throw new Error(`not an instance's id: ${id}`);
  return `${instancesPath}/${id}`;
}

/** Fill in: the form of the vendor's ids. Nothing else may become part of a path. */
function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text);
}
