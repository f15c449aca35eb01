import { spend, type Work, WorkSpentError } from '../work.ts'
import type { CelNode } from './tree.ts'
import { CelError } from './values.ts'

/** The values that a program reads while it is evaluated. */
export interface Frame {
  readonly work: Work
  /** The variables of the environment, and those of macros. */
  readonly variables: unknown[]
  /** The context for macros of the environment. */
  readonly context: unknown
}

/** A compiled part of a program. @throws {CelError} if it has no value, and {WorkSpentError} */
export type Compiled = (frame: Frame) => unknown

/** Compiles the parts of a text. */
export interface PartCompiler {
  readonly compile: (node: CelNode) => Compiled
  /** Returns a compiler with one more variable, and the variable's index in the frame. */
  within(name: string): readonly [compiler: PartCompiler, slot: number]
}

/** Steps for each evaluation of a node. */
export const NODE_STEPS = 6
/** Steps for an error that another part absorbs, because it was thrown and caught. */
const ERROR_STEPS = 200
/** The engine records a stack trace for its own errors, which takes about 10 µs. */
const NATIVE_ERROR_STEPS = 3000

/** Counts an error that another part may absorb. */
export function absorb({ work }: Frame, error: unknown): void {
  if (error instanceof WorkSpentError) throw error
  const isPlain = error instanceof CelError && error.cause === undefined
  spend(work, isPlain ? ERROR_STEPS : NATIVE_ERROR_STEPS)
}
