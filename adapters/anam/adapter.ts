/** Anam's personas; see README.md for what an instance is and what Anam does not say. */
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
import { classifyAnam } from "./errors.ts";
import { parameterSchema } from "./parameters.ts";
import { descriptionWith, descriptionWithout } from "./stamp-text.ts";
import {
  changesBody,
  foundInstance,
  parseCreatedId,
  parsePage,
  parsePersona,
  settingsBody,
} from "./translate.ts";
import type { Persona } from "./translate.ts";

const personasPath = "/v1/personas";
/** The most that Anam gives in one page. */
const pageSize = 100;

export const anamAdapter: Adapter = {
  info: {
    name: "anam",
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
    // Lists show it, it has no part in how a persona behaves, and names are for people.
    stampPlace: "DESCRIPTION",
    // Anam says nothing of its reads, so they are trusted with little.
    visibilityLagMs: 10_000,
    areListsConsistent: false,
    // Lists leave out the language model, the prompt, the avatar's model and the greeting.
    listsLackFields: true,
    regions: [],
    parameterSchema,
    immutableFields: [],
    // Nor of limits: careful by default, and an account may be told more.
    callsPerSecond: 5,
    publicCredentialFields: ["organization"],
    mutationDeadlineMs: 20_000,
  },

  /**
   * Anam never tells to which organization a key belongs, and a key changes when it is rotated. So
   * whoever installs the key names the organization: two accounts with the same name are one place.
   */
  async realm({ credential, target }: VendorCall): Promise<string> {
    const organization = credential["organization"] ?? "";
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(organization)) {
      throw unusable(target.account, "organization");
    }
    return `anam:${organization}`;
  },

  async read(call: VendorCall, id: string): Promise<FoundInstance | undefined> {
    const persona = await getPersona(call, id);
    return persona && foundInstance(persona);
  },

  /**
   * Pages are numbered, so what comes and goes on an earlier page shifts the later ones, and one scan
   * may miss a persona. The host believes an absence only when two scans in a row are equal.
   */
  async list(call: VendorCall, token: string | undefined): Promise<FoundPage> {
    const { personas, nextPage } = await getPage(call, token ?? "1", pageSize);
    return {
      instances: personas.map(foundInstance),
      ...(nextPage === undefined ? {} : { nextToken: `${nextPage}` }),
    };
  },

  async create(call: VendorCall, wanted: WantedInstance): Promise<string> {
    const body = { ...settingsBody(wanted), description: descriptionWith(wanted.stamp, "") };
    const request = { method: "POST", path: personasPath, body, isMutation: true } as const;
    return parseCreatedId((await sendOnPath(call, request)).json);
  },

  async update(
    call: VendorCall,
    { id }: FoundInstance,
    wanted: WantedInstance,
    changes: readonly FieldChange[],
  ): Promise<void> {
    // What people wrote stays; it is read at the last moment.
    const { description } = await getPresent(call, id);
    const body = {
      ...changesBody(wanted, changes),
      description: descriptionWith(wanted.stamp, description),
    };
    await sendOnPath(call, { method: "PUT", path: pathOf(id), body, isMutation: true });
  },

  async release(call: VendorCall, { id }: FoundInstance): Promise<void> {
    const { description } = await getPresent(call, id);
    const body = { description: descriptionWithout(description) };
    await sendOnPath(call, { method: "PUT", path: pathOf(id), body, isMutation: true });
  },

  async delete(call: VendorCall, { id }: FoundInstance): Promise<"deleted" | "absent"> {
    const request = { method: "DELETE", path: pathOf(id), isMutation: true } as const;
    if ((await sendUnlessMissing(call, request)) !== undefined) return "deleted";
    if ((await getPersona(call, id)) === undefined) return "absent";
    throw lostPath(`DELETE of persona ${id}, which is there,`);
  },

  classify: classifyAnam,
};

/** Throws NOT_FOUND when Anam attests that it is gone; nothing was changed then. */
async function getPresent(call: VendorCall, id: string): Promise<Persona> {
  const persona = await getPersona(call, id);
  if (persona !== undefined) return persona;
  throw new ProviderError("NOT_FOUND", `persona ${id} is gone`, { outcome: "NOT_APPLIED" });
}

/**
 * `undefined` only when Anam attests that there is none. A 404 alone is a wrong path's and a proxy's
 * word too, and no form of a body is documented that would tell them apart. So the list is asked: when
 * it answers at the same base, the path is right, and the 404 was said of the persona.
 */
async function getPersona(call: VendorCall, id: string): Promise<Persona | undefined> {
  if (!isId(id)) return undefined;
  const request = { method: "GET", path: pathOf(id), isMutation: false } as const;
  const answer = await sendUnlessMissing(call, request);
  if (answer === undefined) {
    await getPage(call, "1", 1);
    return undefined;
  }
  const persona = parsePersona(answer.json);
  if (persona.id === id) return persona;
  throw new ProviderError("VENDOR_UNREADABLE", `asked for persona ${id}, got ${persona.id}`);
}

async function getPage(
  call: VendorCall,
  page: string,
  perPage: number,
): Promise<ReturnType<typeof parsePage>> {
  const query = { page, perPage: `${perPage}` };
  const request = { method: "GET", path: personasPath, query, isMutation: false } as const;
  const parsed = parsePage((await sendOnPath(call, request)).json);
  if (`${parsed.page}` === page) return parsed;
  throw new ProviderError("VENDOR_UNREADABLE", `asked for page ${page}, got ${parsed.page}`);
}

/** Where a 404 cannot mean the absence of a persona. */
async function sendOnPath(call: VendorCall, request: VendorRequest): Promise<VendorResponse> {
  const answer = await sendUnlessMissing(call, request);
  if (answer === undefined) throw lostPath(`${request.method} ${request.path}`);
  return answer;
}

/** `undefined`: 404, whoever said it, of whatever. */
async function sendUnlessMissing(
  call: VendorCall,
  request: VendorRequest,
): Promise<VendorResponse | undefined> {
  try {
    return await send(call, request);
  } catch (error) {
    if (error instanceof ProviderError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  }
}

function send(call: VendorCall, request: VendorRequest): Promise<VendorResponse> {
  const key = call.credential["apiKey"] ?? "";
  if (!/^[\x21-\x7e]+$/.test(key)) throw unusable(call.target.account, "apiKey");
  return call.http.send({ ...request, headers: { authorization: `Bearer ${key}` } });
}

function unusable(account: string, field: string): ProviderError {
  const message = `credential of account "${account}" has no usable field ${field}`;
  return new ProviderError("BAD_CREDENTIAL", message, { outcome: "NOT_APPLIED" });
}

/** Nobody knows who said it, so nobody knows what a change came to. */
function lostPath(what: string): ProviderError {
  const message = `${what} was answered with 404, which is no word on a persona`;
  return new ProviderError("VENDOR_UNREADABLE", message, { outcome: "UNKNOWN" });
}

function pathOf(id: string): string {
  if (!isId(id)) throw new Error(`not a persona's id: ${id}`);
  return `${personasPath}/${id}`;
}

/** Ids are UUIDs; nothing else becomes part of a path, and nothing else can exist. */
function isId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
