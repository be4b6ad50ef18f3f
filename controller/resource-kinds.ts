/** Our two kinds, as the API server serves them. */
import type { ResourceType } from "./kubernetes/resource-client.ts";
import { apiGroup, apiVersion } from "./resource/names.ts";

export const providerResource: ResourceType = {
  group: apiGroup,
  version: apiVersion,
  plural: "digitalhumanproviders",
  isNamespaced: true,
};

export const classResource: ResourceType = {
  group: apiGroup,
  version: apiVersion,
  plural: "digitalhumanproviderclasses",
  isNamespaced: false,
};
