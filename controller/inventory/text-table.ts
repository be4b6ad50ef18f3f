/** A table as kubectl prints it: columns as wide as their longest value, three spaces between. */
export function textTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const widths = heads.map((head, at) =>
    Math.max(head.length, ...rows.map((row) => (row[at] ?? "").length)),
  );
  return [heads, ...rows].map((row) =>
    row
      .map((cell, at) => (at === heads.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join("   ")
      .trimEnd(),
  );
}
