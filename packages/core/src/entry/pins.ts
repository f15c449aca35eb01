// `@toolgate/core/pins`: tools whose definition changes, and definitions that hold what nobody sees.

export { checkDefinition, DEFINITION_LIMITS, type DefinitionFinding, FINDINGS } from '../pins/definition-check.ts'
export type { DefinitionDiff } from '../pins/diff.ts'
export type { PinStatus } from '../pins/holding.ts'
export {
  DEFINITION_MODES,
  type DefinitionMode,
  NEW_TOOL_MODES,
  PIN_MODES,
  type PinMode,
  type PinRules,
} from '../pins/pin-rules.ts'
export { createPins, type PinnedTool, type Pins } from '../pins/pins.ts'
export { definitionHash } from '../tools/definition-hash.ts'
