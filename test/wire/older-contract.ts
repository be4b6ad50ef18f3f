/**
 * ProviderAPI as a build before this one knew it: the same files without some fields and enum values.
 * Made from the descriptors, so that it stays a subset whatever the contract becomes.
 */
import assert from "node:assert/strict";
import { clone, createFileRegistry } from "@bufbuild/protobuf";
import type { DescFile, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { DescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";

import { file_dhp_provider_v1_provider } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";

/** What the older build does not know: "Message.field" or "Enum.VALUE". */
export function olderProviderApi(unknown: readonly string[]): DescService {
  const left = new Set(unknown);
  const files = new Map<string, FileDescriptorProto>();
  const visit = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    files.set(file.proto.name, pruned(file.proto, left));
    for (const dependency of file.dependencies) visit(dependency);
  };
  visit(file_dhp_provider_v1_provider);
  assert.deepEqual([...left], [], "not in the contract");
  const root = files.get(file_dhp_provider_v1_provider.proto.name);
  assert.ok(root !== undefined);
  const service = createFileRegistry(root, (name) => files.get(name)).getService(
    "dhp.provider.v1.ProviderAPI",
  );
  assert.ok(service !== undefined);
  return service;
}

/** One of its unary RPCs, by the proto's name. */
export function olderRpc(service: DescService, name: string): DescMethodUnary {
  const method = service.methods.find(
    (candidate): candidate is DescMethodUnary =>
      candidate.name === name && candidate.methodKind === "unary",
  );
  assert.ok(method !== undefined);
  return method;
}

function pruned(file: FileDescriptorProto, unknown: Set<string>): FileDescriptorProto {
  const copy = clone(FileDescriptorProtoSchema, file);
  for (const message of copy.messageType) pruneMessage(message, unknown);
  for (const described of copy.enumType) {
    described.value = described.value.filter(
      ({ name }) => !unknown.delete(`${described.name}.${name}`),
    );
  }
  return copy;
}

/** An optional scalar has a oneof of its own in the descriptor, which goes with it. */
function pruneMessage(message: DescriptorProto, unknown: Set<string>): void {
  const oneofOf = (index: number | undefined) =>
    index === undefined ? undefined : message.oneofDecl[index];
  const kept = message.field.filter(({ name }) => !unknown.delete(`${message.name}.${name}`));
  if (kept.length === message.field.length) return;
  const hasOneof = (field: (typeof kept)[number]): boolean =>
    Object.hasOwn(field, "oneofIndex") || field.proto3Optional;
  const oneofs = kept.flatMap((field) =>
    hasOneof(field) ? (oneofOf(field.oneofIndex) ?? []) : [],
  );
  const distinct = [...new Set(oneofs)];
  for (const field of kept) {
    const oneof = hasOneof(field) ? oneofOf(field.oneofIndex) : undefined;
    if (oneof !== undefined) field.oneofIndex = distinct.indexOf(oneof);
  }
  message.field = kept;
  message.oneofDecl = distinct;
}
