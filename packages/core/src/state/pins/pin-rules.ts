import { checkShape, ConfigError, didYouMean, shapeOf } from '@toolgate/values'

export const PIN_MODES = ['off', 'warn', 'suspend'] as const
/** The effect of a changed definition: none, an event, or an event and the tool is hidden until it is accepted. */
export type PinMode = (typeof PIN_MODES)[number]

export const NEW_TOOL_MODES = ['pin', 'suspend'] as const
/**
 * How a new tool is handled: it is pinned at first sight, or an event reports it and the tool is held
 * until a person accepts it. The first listing of a namespace is always pinned.
 */
export type NewToolMode = (typeof NEW_TOOL_MODES)[number]

export const DEFINITION_MODES = ['off', 'warn', 'quarantine'] as const
/** The effect of a finding of the definition check: nothing, an event, or an event and the tool is hidden. */
export type DefinitionMode = (typeof DEFINITION_MODES)[number]

export interface PinRules {
  /** Default `warn`. */
  readonly changed?: PinMode | undefined
  /** Default `pin`. */
  readonly new?: NewToolMode | undefined
}

const SHAPE = shapeOf<PinRules>({ changed: true, new: true })

/**
 * Reads the `pins` of a gate.
 *
 * @throws {ConfigError} for an unknown mode or key
 */
export function parsePinRules(pins: PinMode | PinRules | undefined): { mode: PinMode; newTools: NewToolMode } {
  if (pins === undefined || typeof pins === 'string')
    return { mode: modeOf('pins', pins, PIN_MODES) ?? 'warn', newTools: 'pin' }
  checkShape('pins', pins, SHAPE)
  return {
    mode: modeOf('pins.changed', pins.changed, PIN_MODES) ?? 'warn',
    newTools: modeOf('pins.new', pins.new, NEW_TOOL_MODES) ?? 'pin',
  }
}

/** Checks the mode. @throws {ConfigError} for an unknown mode */
export function parseDefinitionMode(mode: DefinitionMode | undefined): DefinitionMode {
  return modeOf('definitions', mode, DEFINITION_MODES) ?? 'warn'
}

function modeOf<Mode extends string>(path: string, given: unknown, modes: readonly Mode[]): Mode | undefined {
  const mode = modes.find((known) => known === given)
  if (mode !== undefined || given === undefined) return mode
  const written = typeof given === 'string' ? given : typeof given
  const near = didYouMean(written, modes)
  throw new ConfigError(path, `"${written}" is unknown; the modes are ${modes.join(', ')}${near}`)
}
