import type { JsonSchema } from '../../tools/tool.ts'
import type { Dialect } from './dialect.ts'
import type { Node, Note } from './node.ts'

/** One schema on its way to a target. The rewrites change it in turn. */
export interface Draft {
  readonly pointer: string
  readonly words: Map<string, unknown>
  /** What the target cannot say, for the description. */
  readonly told: string[]
}

/** Where a draft stands. */
export interface At {
  readonly root: boolean
  /** Whether a property that is not required leads here. */
  readonly optional: boolean
  readonly depth: number
  /** What is being written out, around and here. */
  readonly within: readonly Node[]
}

/** What the rewrites ask for. */
export interface Writer {
  readonly dialect: Dialect
  note(note: Note): void
  /** Moves a keyword into the description, or away where it is too long or is no plain text. */
  describe(draft: Draft, keyword: string, word: unknown): void
  /** Gives a node with its references and `allOf` taken in. */
  absorbed(node: Node, at: At): Draft
  write(node: Node, at: At): JsonSchema
}
