import type { Dispatcher } from "undici";

import { ApiError } from "./api-error.ts";

export type ResponseBody =
  | { readonly kind: "empty" }
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "not-json"; readonly problem: string };

/**
 * Reads an answer's body whole.
 * @throws ApiError "unreadable" when it is longer than `bytesMax`
 */
export async function readBody(
  answer: Dispatcher.ResponseData,
  bytesMax: number,
): Promise<ResponseBody> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("response chunk is not bytes");
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new ApiError({
        kind: "unreadable",
        status: answer.statusCode,
        reason: "",
        message: `answer longer than ${bytesMax} bytes`,
      });
    }
    chunks.push(chunk);
  }
  if (bytes === 0) return { kind: "empty" };
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    return { kind: "json", value };
  } catch (error) {
    return { kind: "not-json", problem: error instanceof Error ? error.message : String(error) };
  }
}
