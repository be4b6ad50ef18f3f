/** The suite's side of an emulator's port behind the scenes (services/vendor-emulator/fault-words.ts). */
import { request as httpRequest } from "node:http";
import type {
  Edit,
  EmulatedInstance,
  EmulatedRequest,
  Fault,
  Switches,
  Vocabulary,
} from "../../../services/vendor-emulator/fault-words.ts";

const timeoutMs = 10_000;
const answerBytesMax = 64 << 20;

export class FaultPort {
  readonly vocabulary: Vocabulary;
  readonly #url: string;

  private constructor(url: string, vocabulary: Vocabulary) {
    this.#url = url;
    this.vocabulary = vocabulary;
  }

  /** Asks what the emulator can do. Rejects with plain words when there is none. */
  static async open(url: string): Promise<FaultPort> {
    const base = url.replace(/\/+$/, "");
    const vocabulary = JSON.parse(await ask("GET", `${base}/conformance`));
    return new FaultPort(base, vocabulary);
  }

  /** One fault; `times` is 1 and `moment` "before" when absent. */
  async arm(fault: Partial<Fault> & Pick<Fault, "operation" | "effect">): Promise<void> {
    await this.#post("faults", { moment: "before", times: 1, ...fault });
  }

  async turn(switches: Switches): Promise<void> {
    await this.#post("switches", switches);
  }

  /** Ids of instances that came into being. */
  async edit(edit: Edit): Promise<readonly string[]> {
    return JSON.parse(await this.#post("edits", edit)).ids;
  }

  /** Takes back all faults and switches. */
  async reset(): Promise<void> {
    await this.#post("reset", {});
  }

  /** All that exists at the vendor, without lag. */
  async instances(): Promise<readonly EmulatedInstance[]> {
    return JSON.parse(await ask("GET", `${this.#url}/conformance/instances`)).instances;
  }

  /** Those whose record holds `text`: a stamp. */
  async instancesWith(text: string): Promise<readonly EmulatedInstance[]> {
    return (await this.instances()).filter((instance) => instance.text.includes(text));
  }

  /** Where the record of requests ends now. */
  async mark(): Promise<number> {
    return (await this.#requests(0)).next;
  }

  /** What came since a mark. */
  async requestsSince(mark: number): Promise<readonly EmulatedRequest[]> {
    return (await this.#requests(mark)).requests;
  }

  async #requests(
    since: number,
  ): Promise<{ readonly requests: readonly EmulatedRequest[]; readonly next: number }> {
    return JSON.parse(await ask("GET", `${this.#url}/conformance/requests?since=${since}`));
  }

  #post(path: string, body: object): Promise<string> {
    return ask("POST", `${this.#url}/conformance/${path}`, JSON.stringify(body));
  }
}

function ask(method: string, url: string, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (what: string): void =>
      reject(new Error(`the vendor's fault port does not work: ${method} ${url}: ${what}`));
    const request = httpRequest(url, { method, timeout: timeoutMs }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) request.destroy(new Error("an answer without end"));
        else chunks.push(chunk);
      });
      response.on("error", (error) => fail(error.message));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(text);
        else fail(`${response.statusCode}: ${text.slice(0, 500)}`);
      });
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    request.on("error", (error) => fail(error.message));
    request.end(body);
  });
}
