/** Server reflection, v1 and v1alpha, so that people can list and call our services by hand. */
import { readFileSync } from "node:fs";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";

const descriptorSet = new URL("../../proto/gen/descriptors.binpb", import.meta.url);

/**
 * Answers from the committed descriptor set, file by file as buf wrote them. The library's usual way
 * through proto-loader rewrites the files and loses their imports; grpcurl then resolves nothing.
 */
export function addReflection(server: Server): void {
  const { file: files } = fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSet));
  const fileDescriptorProtos = files.map((file) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, file)),
  );
  // One definition is enough: the library gathers files from all of them, whatever they define.
  const everything = {
    format: "Protocol Buffer 3 EnumDescriptorProto",
    type: {},
    fileDescriptorProtos,
  } as const;
  new ReflectionService({ everything }).addToServer(server);
}
