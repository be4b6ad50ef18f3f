/** A vendor for the kit's own tests: boxes with a label, and the ways to ask for them. */
import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";

import type { Edit, EmulatedInstance, Switches, VendorEffect } from "./fault-words.ts";
import { LaggingStore } from "./lagging-store.ts";
import type { VendorEmulator } from "./emulator.ts";
import type { ApiAnswer, ApiRequest, RequestEnd, VendorModel } from "./vendor-model.ts";

export const vendorHost = "api.boxes.example";

interface Box {
  readonly id: string;
  readonly label: string;
}

export class BoxModel implements VendorModel {
  readonly hosts = [vendorHost];
  readonly vocabulary = {
    effects: ["throttled", "server-error"],
    switches: ["listLagMs", "credential"],
    edits: ["rename", "stranger"],
  } as const;
  /** As `turn` said last. */
  switches: Partial<Switches> = {};
  readonly ends: RequestEnd[] = [];
  readonly #boxes = new LaggingStore<Box>();
  readonly #asked = new Set<ApiRequest>();
  readonly #news = new EventEmitter();

  /** How many requests came, answered or not. */
  get askedCount(): number {
    return this.#asked.size;
  }

  /** Looks again whenever a request came or ended. */
  async until(isSo: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(10_000);
    while (!isSo()) await once(this.#news, "news", { signal });
  }

  operationOf(request: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    const { method, path } = request;
    this.#asked.add(request);
    this.#news.emit("news");
    if (!path.startsWith("/boxes")) return undefined;
    if (method === "GET") return path === "/boxes" ? "list" : "read";
    return method === "DELETE" ? "delete" : "create";
  }

  answer(request: ApiRequest): ApiAnswer {
    const id = request.path.split("/")[2] ?? "";
    switch (this.operationOf(request)) {
      case "create":
        return { status: 201, body: this.#put(request.body), change: "created", instanceId: "b1" };
      case "list":
        return { status: 200, body: this.#boxes.all(this.switches.listLagMs) };
      case "read":
        return { status: 200, body: this.#boxes.get(id), instanceId: id };
      case "delete":
        this.#boxes.put(id, undefined);
        return { status: 204, change: "deleted", instanceId: id };
      default:
        if (request.path === "/mistake") throw new Error("a mistake of the model");
        return { status: 200, body: { key: request.headers["x-key"], host: request.host } };
    }
  }

  say(effect: VendorEffect, _request: ApiRequest, retryAfterMs?: number): ApiAnswer {
    if (effect !== "throttled") return { status: 500, body: { oh: "no" } };
    const headers = retryAfterMs === undefined ? {} : { "retry-after": `${retryAfterMs / 1_000}` };
    return { status: 400, headers, body: { error: "slowly, please" } };
  }

  turn(switches: Required<Switches>): void {
    this.switches = switches;
  }

  edit({ edit, id }: Edit): readonly string[] {
    if (edit === "stranger") return [this.#put("of another tenant", "s1").id];
    if (this.#boxes.get(id) === undefined) throw new Error(`there is no box ${id}`);
    this.#put("renamed", id);
    return [];
  }

  instances(): readonly EmulatedInstance[] {
    return this.#boxes
      .all()
      .map((box) => ({ id: box.id, text: JSON.stringify(box), createdAtMs: 1 }));
  }

  ended(_request: ApiRequest, end: RequestEnd): void {
    this.ends.push(end);
    this.#news.emit("news");
  }

  #put(label: string, id = "b1"): Box {
    const box = { id, label };
    this.#boxes.put(id, box);
    return box;
  }
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

export interface Asked {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: the emulator's own authority. */
  readonly ca?: string;
  readonly signal?: AbortSignal;
}

/** One request to the vendor, on a connection of its own. */
export async function askVendor(
  emulator: VendorEmulator,
  path: string,
  asked: Asked = {},
): Promise<Answered> {
  return whole(await beginAsking(emulator, path, asked));
}

/** Its answer's head; the body is not read yet. */
export function beginAsking(
  { url, caFile }: VendorEmulator,
  path: string,
  { method = "GET", body, headers, ca = readFileSync(caFile, "utf8"), signal }: Asked = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = {
      method,
      ca,
      agent: false,
      timeout: 10_000,
      servername: vendorHost,
      headers: { host: vendorHost, ...headers },
      ...(signal === undefined ? {} : { signal }),
    };
    const request = httpsRequest(url + path, options, resolve);
    request.on("error", reject);
    request.end(body);
  });
}

/** One request to the port behind the scenes. */
export function askBehind(
  { faultUrl }: VendorEmulator,
  path: string,
  body?: unknown,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const request = httpRequest(faultUrl + path, { method, agent: false, timeout: 10_000 });
    request.on("response", (response) => resolve(whole(response)));
    request.on("error", reject);
    request.end(typeof body === "string" || body === undefined ? body : JSON.stringify(body));
  });
}

async function whole(response: IncomingMessage): Promise<Answered> {
  let text = "";
  response.setEncoding("utf8");
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}
