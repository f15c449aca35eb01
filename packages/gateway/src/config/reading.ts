import type { ConfigPath } from './problems.ts'
import type { Source } from './source.ts'

/** One problem with policies, as core tells it. */
export interface PolicyProblem {
  /** Such as `policy[0].deny[1].when`. */
  readonly path: string
  readonly message: string
  /** Offset into the text at `path`, where it is known. */
  readonly offset?: number | undefined
}

/** Checks selectors and CEL. Gives the problems; none when the policies can be used. */
export type CheckPolicy = (policies: readonly unknown[], groupNames: readonly string[]) => readonly PolicyProblem[]

/** What the readers of the sections share while one file is read. */
export interface Reading {
  readonly source: Source
  /** Absolute folder of the file: relative paths stand on it. */
  readonly configDir: string
  /** Absolute file names from which packages are looked for. */
  readonly packagesFrom: readonly string[]
  readonly checkPolicy: CheckPolicy
  readonly groupNames: readonly string[]
}

/** Gives the keys of a mapping, or none when it is not one: the shape is checked elsewhere. */
export function keysOf(source: Source, path: ConfigPath): readonly string[] {
  return [...(source.get(path)?.entries?.keys() ?? [])]
}

/** Gives how many items a list has, or 0 when it is none. */
export function lengthOf(source: Source, path: ConfigPath): number {
  return source.get(path)?.items?.length ?? 0
}

/** Answers whether the file says anything at a place. */
export function has(source: Source, path: ConfigPath): boolean {
  return source.get(path) !== undefined
}
