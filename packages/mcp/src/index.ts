// The protocol
export {
  type JsonRpcError,
  LEGACY_VERSIONS,
  LIST_CHANGED,
  META,
  MODERN_VERSIONS,
  relayedError,
  type RequestId,
  RPC_CODES,
} from './protocol.ts'

// Calls and results
export { callTool, type CallParams, checkListParams, readCall, recordRefusedCall, type ToolCall } from './calls.ts'
export {
  isMcpResult,
  type McpAnswer,
  McpError,
  type McpResult,
  type ResultTool,
  RpcError,
  toAnswer,
  errorResult,
  toResult,
  toSendable,
  unwrapOutcome,
  withoutHop,
} from './results.ts'

export { withoutNullEntries, withoutNulls } from './nulls.ts'

// Lists and their changes
export { type ListedTool, toListedTool } from './listed-tool.ts'
export { type ToolList, ToolLists } from './tool-lists.ts'
export { type FindRules, type NameClash, type NameRules, type PrefixMode } from './names.ts'
export { ListWatch, type ListWatcher, type ListWatchOptions } from './list-watch.ts'

// The tools that find and open others
export { createMetaTools, isMetaTool, type MetaToolDeps, type SearchOffer, toMcpOutput } from './meta-tools.ts'

// Sessions and servers
export { inSession, ownerOf } from './sessions.ts'
export { serverNameOf, toServedName } from './served-name.ts'
export { type LeftOutTool, type ServerClaims, type ServerOverlay, ServerTools } from './server-tools.ts'

// Resources, templates and prompts
export { isNotFound, type ItemAnswer, promptNotFound, resourceNotFound, toItemAnswer } from './item-answers.ts'
export { type ItemList, ItemLists, LIST_NAMES, type ListedKind, type ListName } from './item-lists.ts'
export { toListedItem } from './listed-item.ts'
export { type Page, PAGE_SIZE, pageOf } from './pages.ts'
export { type ContestedUri, ResourceOwners, type ResourceServers } from './resource-owners.ts'
export { type ItemClaims, type LeftOutItem, type ListedItems, ServerItems } from './server-items.ts'
