import { spend, type Work, WorkSpentError } from '../work.ts'
import type { CelNode } from './tree.ts'
import { CelError, kindOf } from './values.ts'

/** The values that a program reads while it is evaluated. */
export interface Frame {
  readonly work: Work
  /** The variables of the environment, and those of macros. */
  readonly variables: unknown[]
  /** For the macros of the environment. */
  readonly context: unknown
}

/** A part of a program. @throws {CelError} where it has no value, and {WorkSpentError} */
export type Compiled = (frame: Frame) => unknown

/** Compiles the parts of a text. */
export interface PartCompiler {
  readonly compile: (node: CelNode) => Compiled
  /** Returns a compiler that knows one more variable, and its place in the frame. */
  within(name: string): readonly [compiler: PartCompiler, slot: number]
}

/** Steps of a node each time that it is evaluated. */
export const NODE_STEPS = 6
/** Steps of an error that another part makes up for: it has been thrown and caught. */
const ERROR_STEPS = 200
/** The engine writes down the places of the code that made its own errors, which takes about 10 µs. */
const NATIVE_ERROR_STEPS = 3000

/** Takes an error for which another part may make up. */
export function absorb({ work }: Frame, error: unknown): void {
  if (error instanceof WorkSpentError) throw error
  const isPlain = error instanceof CelError && error.cause === undefined
  spend(work, isPlain ? ERROR_STEPS : NATIVE_ERROR_STEPS)
}

/** @throws {CelError} */
export function toBool(value: unknown): boolean {
  if (value === true || value === false) return value
  throw new CelError(`no such overload: ${kindOf(value)} as a condition`)
}
