// `@toolgate/values/cel`: the Common Expression Language. The host defines additional functions and the variables.

export { parseCelFor, type ParsedCel } from './cel.ts'
export type { Program } from './compile.ts'
export { createEnvironment, type Environment, type EnvironmentParts, type Macro } from './environment.ts'
export { absorb, type Compiled, type Frame } from './frame.ts'
export { type Overload, overload } from './library.ts'
export { type CelNode, CelProblem, childrenOf, countNodes, isMacro, textOf } from './tree.ts'
export { AbsentError, CelMap, Uint } from './values.ts'
