import type { Held } from '../layers/pins.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { DefinitionChecks } from './checks.ts'
import type { PinBook } from './pin-book.ts'

export const PIN_MODES = ['off', 'warn', 'suspend'] as const
/** What a changed definition does: nothing, an event, or an event and the tool is taken away until it is accepted. */
export type PinMode = (typeof PIN_MODES)[number]

export const DEFINITION_MODES = ['off', 'warn', 'quarantine'] as const
/** What a finding of the definition check does: nothing, an event, or an event and the tool is hidden. */
export type DefinitionMode = (typeof DEFINITION_MODES)[number]

/** `new`: not pinned yet. `changed`: not the pinned definition. `suspended`: either of them, and taken away. */
export type PinStatus = 'pinned' | 'changed' | 'suspended' | 'new'

/** What is held back, by what the book and the checks say now. */
export interface Holding {
  statusOf(tool: Tool): PinStatus
  suspended(tool: Tool): Held | undefined
  quarantined(tool: Tool, snapshot: Toolset): Held | undefined
}

const SUGGESTION = 'A person has to accept its definition first.'
const CHANGED = 'its definition has changed'
const UNKNOWN = 'its definition cannot be compared with the accepted one now'

export function createHolding({
  mode,
  check,
  book,
  checks,
}: {
  readonly mode: PinMode
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: DefinitionChecks
}): Holding {
  const statusOf = (tool: Tool): PinStatus => {
    const pin = book.get(tool.id)
    if (pin?.hash === definitionHash(tool)) return 'pinned'
    if (mode === 'suspend') return 'suspended'
    return pin && mode === 'warn' ? 'changed' : 'new'
  }
  const isAccepted = (tool: Tool): boolean => {
    const pin = book.get(tool.id)
    return pin?.by !== undefined && pin.hash === definitionHash(tool)
  }
  return {
    statusOf,
    suspended(tool) {
      if (statusOf(tool) !== 'suspended') return undefined
      const pin = book.get(tool.id)
      return pin
        ? {
            text: `${CHANGED}: it is ${short(definitionHash(tool))} and ${short(pin.hash)} is pinned`,
            message: CHANGED,
            suggestion: SUGGESTION,
            since: pin.since,
          }
        : { text: book.problemOf(tool.id), message: UNKNOWN }
    },
    quarantined(tool, snapshot) {
      if (check !== 'quarantine' || isAccepted(tool)) return undefined
      const found = checks.grave(tool, snapshot)
      return found.length === 0 ? undefined : { text: found.map(({ text }) => text).join('; ') }
    },
  }
}

function short(hash: string): string {
  return hash.slice(0, 12)
}
