// `@toolgate/core/pins`: changed tool definitions, and hidden content in them.

export { checkDefinition, DEFINITION_LIMITS, type DefinitionFinding, FINDINGS } from '../state/pins/definition-check.ts'
export type { DefinitionDiff } from '../state/pins/diff.ts'
export { PIN_STATUSES, type PinStatus } from '../state/pins/holding.ts'
export {
  DEFINITION_MODES,
  type DefinitionMode,
  NEW_TOOL_MODES,
  PIN_MODES,
  type PinMode,
  type PinRules,
} from '../state/pins/pin-rules.ts'
export { createPins, type PinnedTool, type Pins } from '../state/pins/pins.ts'
export { definitionHash } from '../tools/definition-hash.ts'
