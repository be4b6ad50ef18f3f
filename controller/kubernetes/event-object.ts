/** What an event is about, as a reference that outlives the object. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent on cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
}

/** Something that happened to an object, in words for people. */
export interface ObjectEvent {
  readonly regarding: ObjectReference;
  readonly type: "Normal" | "Warning";
  /** Why, in CamelCase, for machines: "ProviderCreated". */
  readonly reason: string;
  /** What was being done, in CamelCase: "Ensure". */
  readonly action: string;
  readonly note: string;
}

export interface EventBodyOptions {
  readonly event: ObjectEvent;
  /** A qualified name, as in "example.com/some-controller". */
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly nowMs: number;
  /** Makes the name unique. */
  readonly suffix: string;
}

/** The body of an events.k8s.io/v1 Event, within the lengths its validation allows. */
export function eventBody(options: EventBodyOptions): EventBody {
  const { event, reportingController, reportingInstance, nowMs, suffix } = options;
  const { regarding } = event;
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: eventName(regarding.name, suffix), namespace: eventNamespace(regarding) },
    eventTime: microTime(nowMs),
    reportingController,
    reportingInstance: cutToBytes(reportingInstance, shortBytesMax),
    action: cutToBytes(event.action, shortBytesMax),
    reason: cutToBytes(event.reason, shortBytesMax),
    type: event.type,
    note: cutToBytes(event.note, noteBytesMax),
    regarding,
  };
}

export interface EventBody {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly [field: string]: unknown;
}

/** Events about cluster-scoped objects live in the namespace "default": validation wants it. */
export function eventNamespace(regarding: ObjectReference): string {
  return regarding.namespace ?? "default";
}

/** Two events with equal identity are one thing that happened again. */
export function eventIdentity(event: ObjectEvent): string {
  const { regarding, type, reason, action, note } = event;
  return JSON.stringify([regarding.kind, regarding.uid, type, reason, action, note]);
}

/** The API's MicroTime: exactly six digits of a second, or it is refused. */
export function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace("Z", "000Z");
}

function eventName(name: string, suffix: string): string {
  const kept = name.slice(0, nameLengthMax - suffix.length - 1).replace(/[-.]+$/, "");
  return `${kept}.${suffix}`;
}

/** Cuts between characters, so that no half character is left at the end. */
function cutToBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= bytesMax) return text;
  let end = bytesMax;
  while (end > 0 && isContinuationByte(bytes[end])) end -= 1;
  return bytes.subarray(0, end).toString("utf8");
}

function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

const nameLengthMax = 253;
const shortBytesMax = 128;
const noteBytesMax = 1_024;
