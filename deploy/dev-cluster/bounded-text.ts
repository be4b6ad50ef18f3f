/** Keeps the end of a growing text: the part of a log that says why a program failed. */
export interface BoundedText {
  append(chunk: string): void;
  /** The kept end; it starts with "..." when something was dropped. */
  text(): string;
}

/** @param lengthMax most characters kept */
export function createBoundedText(lengthMax: number): BoundedText {
  let kept = "";
  let hasDropped = false;
  return {
    append(chunk) {
      kept += chunk;
      if (kept.length > lengthMax) {
        kept = kept.slice(kept.length - lengthMax);
        hasDropped = true;
      }
    },
    text: () => (hasDropped ? `...${kept}` : kept),
  };
}
