// `@toolgate/core/search`: finding tools among many, and the tools with which a model does so.

export { callingOf } from '../search/calling.ts'
export { type MetaAnswer, metaTools } from '../search/meta-tools.ts'
export type { SearchHit } from '../search/search.ts'
