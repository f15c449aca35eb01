// `@toolgate/core/search`: finding tools among many, and the tools that let a model search.

export { callingOf } from '../search/calling.ts'
export { type MetaAnswer, metaTools } from '../search/meta-tools.ts'
export type { SearchHit } from '../search/search.ts'
export type { Searcher } from '../search/searcher.ts'
