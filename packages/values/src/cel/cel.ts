import { checkTypes } from './check.ts'
import { compileProgram, type Program } from './compile.ts'
import type { Environment } from './environment.ts'
import { parseCelText } from './parser.ts'
import type { CelNode } from './tree.ts'

/** A parsed text of CEL. */
export interface ParsedCel {
  readonly tree: CelNode
  /** Returns the type of the result. @throws {CelProblem} for unknown names, and texts that can never have a value */
  check(): string
  /** Returns the program. @throws {CelProblem} for a call or a variable that cannot be compiled */
  compile(): Program
}

/**
 * Parses a text of CEL for an environment. It is checked before it is compiled, and compiled once.
 *
 * @throws {CelProblem}
 */
export function parseCelFor(environment: Environment, text: string): ParsedCel {
  const tree = parseCelText(text)
  return {
    tree,
    check: () => checkTypes(tree, environment).kind,
    compile: () => compileProgram(tree, environment),
  }
}
