/**
 * Orders two resourceVersions of one kind: negative when `a` is older, 0 when equal, positive when
 * newer. Undefined where they cannot be ordered (an extension server may use other strings).
 * kube-apiserver's are decimal numbers beyond 2^53, comparable since Kubernetes 1.35 (KEP-5504).
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!decimal.test(a) || !decimal.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** True only where both can be ordered and `a` is older than `b`. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

const decimal = /^(0|[1-9]\d*)$/;
