import { reason } from '../decision/reason.ts'
import { noBits, setBit } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** Why a tool is taken away, for people. */
export interface Held {
  readonly text: string
  /** What the caller may know of it: nothing that an upstream wrote. */
  readonly message?: string | undefined
  readonly suggestion?: string | undefined
  /** Wall-clock milliseconds. */
  readonly since?: number | undefined
}

/** What is known of definitions: which are not the ones that were accepted, and which hold what they should not. */
export interface PinStates {
  suspended(tool: Tool): Held | undefined
  quarantined(tool: Tool): Held | undefined
}

/** Suspends the tools whose definition nobody has accepted, and hides those in quarantine. */
export function pinEffects(snapshot: Toolset, pins: PinStates): Effect[] {
  return [
    ...holdBack(snapshot, 'tool_quarantined', (tool) => pins.quarantined(tool)),
    ...holdBack(snapshot, 'tool_suspended', (tool) => pins.suspended(tool)),
  ]
}

function holdBack(
  snapshot: Toolset,
  code: 'tool_quarantined' | 'tool_suspended',
  heldOf: (tool: Tool) => Held | undefined,
): Effect[] {
  const bits = noBits(snapshot.size)
  // By id: a view of another snapshot asks with its own tool of that name.
  const all = new Map<string, Held>()
  for (const [index, tool] of snapshot.tools.entries()) {
    const held = heldOf(tool)
    if (!held) continue
    setBit(bits, index)
    all.set(tool.id, held)
  }
  if (all.size === 0) return []
  const reasonOf = ({ id }: Tool) => {
    const { text, ...more } = all.get(id) ?? { text: 'its definition is held back' }
    return reason('pins', code, text, more)
  }
  return [{ outcome: code === 'tool_quarantined' ? 'deny' : 'wait', bits, reason: reasonOf }]
}
