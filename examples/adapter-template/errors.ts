/**
 * The table of Acme's errors, to the contract's reasons. Walk the contract's list row by row and give
 * each the vendor's own word: a status alone is seldom enough. NOT_FOUND is for this very instance
 * only; a wrong path, a proxy and a missing voice say 404 too.
 */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { Reason } from "../../services/contract/provider-error.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";

/** Fill in: by the word in the body. */
const reasonOfWord: Readonly<Record<string, Reason>> = {
  instance_not_found: "NOT_FOUND",
  // What the emulator says for a word that it still lacks; goes with the last of them.
  fill_in: "UNSUPPORTED",
};

/** Fill in: by status, where no word of the table came with it. */
const reasonOfStatus: Readonly<Record<number, Reason>> = {};

const wordsMax = 300;

/** See the file comment; `undefined` for a success. */
export function classifyAcme({ status, json }: VendorResponse): ProviderError | undefined {
  if (status >= 200 && status < 300) return undefined;
  const { word, message } = errorIn(json);
  const reason =
    reasonOfWord[word] ??
    reasonOfStatus[status] ??
    (status >= 500 ? "VENDOR_ERROR" : "VENDOR_UNREADABLE");
  const words = [`status ${status}`, word, message].filter((part) => part !== "").join(": ");
  return new ProviderError(reason, words.slice(0, wordsMax));
}

/** Fill in: where the vendor puts its word and its text. */
function errorIn(json: unknown): { readonly word: string; readonly message: string } {
  const { code, message } = recordIn(recordIn(json)["error"]);
  return {
    word: typeof code === "string" ? code : "",
    message: typeof message === "string" ? message : "",
  };
}

function recordIn(json: unknown): Readonly<Record<string, unknown>> {
  return typeof json === "object" && json !== null ? { ...json } : {};
}
