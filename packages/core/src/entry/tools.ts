// `@toolgate/core/tools`: ids, records and marks of tools. For packages that build on core, such as `@toolgate/adapters`;
// may change in any release.

export {
  type NativeToolRecord,
  OVERLAY,
  type RecordTool,
  type ToolOverlay,
  type UnnamedToolDefinition,
} from '../tools/record.ts'
export { isOwnTool, isRequestTool, markOwnTool, markPassingTool } from '../tools/own-tool.ts'
export { compareToolIds, isItemId, kindOfId, RESERVED_NAMESPACES, RESOURCE_PREFIX, toToolId } from '../tools/tool-id.ts'
export { INPUT_HANDLINGS, type InputHandling, titleOf, type ToolIcon, type ToolMeta } from '../tools/tool.ts'
export { withoutNullKeywords } from '../tools/schema.ts'
export { originalHash } from '../tools/definition-hash.ts'
