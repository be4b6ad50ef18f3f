/** A watch's answer line by line: what is held back, left out, and cut at awkward places. */
import type { Fault } from "./fault-rule.ts";

const heldBytesMax = 64 << 20;
const lineFeed = 0x0a;

export class WatchLines {
  readonly #send: (line: Buffer) => void;
  readonly #faults: () => readonly Fault[];
  #rest: Buffer = Buffer.alloc(0);
  #held: Buffer[] = [];
  #heldBytes = 0;

  /** @param faults as the rules stand at the moment */
  constructor(send: (line: Buffer) => void, faults: () => readonly Fault[]) {
    this.#send = send;
    this.#faults = faults;
  }

  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed)) {
      this.#line(bytes.subarray(0, end + 1));
      bytes = bytes.subarray(end + 1);
    }
    this.#rest = bytes;
  }

  /** Call it when the rules have changed: what no rule holds any more is sent. */
  release(): void {
    if (this.#isHolding()) return;
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const line of held) this.#pass(line);
  }

  #line(line: Buffer): void {
    if (!this.#isHolding()) return this.#pass(line);
    this.#heldBytes += line.length;
    if (this.#heldBytes > heldBytesMax)
      throw new Error(`more than ${heldBytesMax} bytes held back`);
    this.#held.push(Buffer.from(line));
  }

  #pass(line: Buffer): void {
    const dropping = this.#faults().find((fault) => fault.kind === "drop-bookmarks");
    if (dropping !== undefined && isBookmark(line)) {
      if (dropping.which === "all" || !line.includes("k8s.io/initial-events-end")) return;
    }
    this.#send(line);
  }

  #isHolding(): boolean {
    return this.#faults().some(({ kind }) => kind === "hold-events");
  }
}

function isBookmark(line: Buffer): boolean {
  return line.subarray(0, 40).includes('"type":"BOOKMARK"');
}

/** Two parts, of which the first ends inside a character where `bytes` has one of several bytes. */
export function splitInsideCharacter(bytes: Buffer): readonly Buffer[] {
  const inside = bytes.findIndex((byte) => (byte & 0b1100_0000) === 0b1000_0000);
  const at = inside > 0 ? inside : bytes.length >> 1;
  return at === 0 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)];
}
