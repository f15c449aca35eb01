// `@toolgate/core/toolset`: collections of tools, filters, selectors and live sources.

export { buildToolset } from '../decide/build-toolset.ts'
export type { Catalog, Source } from '../tools/catalog.ts'
export type { OwnSource, OwnSources } from '../tools/own-lists.ts'
export {
  allowIds,
  and,
  byCategory,
  byNamespace,
  byTagsAll,
  byTagsAny,
  byTagsNone,
  denyIds,
  not,
  or,
} from '../tools/filters.ts'
export { matchesGlob, parseGlob } from '../tools/glob.ts'
export { matchesSelector, parseSelector } from '../tools/selector.ts'
export { createToolset, type Toolset } from '../tools/toolset.ts'
export {
  definePrompt,
  defineResource,
  defineTemplate,
  type PromptDefinition,
  type ResourceDefinition,
  type TemplateDefinition,
} from '../tools/items.ts'
export type { PromptArgument } from '../tools/tool.ts'
export type { ItemKind } from '../tools/tool-id.ts'
export { isNormalUri, toNormalUri, toPlainUri } from '../tools/uri.ts'
export { matchesUri, toPlainGlob } from '../tools/uri-glob.ts'
export { parseUriTemplate, type UriTemplate } from '../tools/uri-template.ts'

// Tools that ask for more input
export { type Continuation, InputRequired } from '../call/outcome.ts'
export type { CallPreview } from '../call/preview.ts'
