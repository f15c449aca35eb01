import type { AvailabilitySource, GroupState } from '../ports/ports.ts'
import { checkShape, createEmitter, shapeOf } from '@toolgate/values'

/** Every group is available, always. */
export const alwaysAvailable: AvailabilitySource = {
  revision: 1,
  get: () => ({ available: true }),
  probesOf: () => [],
  subscribe: () => () => {},
}

export interface MemoryAvailability extends AvailabilitySource {
  set(group: string, state: GroupState): void
}

const STATE = shapeOf<GroupState>(
  { available: true, unknown: true, reason: true, detail: true, suggestion: true, since: true },
  'field',
)

/** Returns an availability that the host sets, for tests and for hosts that check their groups themselves. */
export function memoryAvailability(initial: Readonly<Record<string, GroupState>> = {}): MemoryAvailability {
  const states = new Map(Object.entries(initial))
  for (const [group, state] of states) checkShape(group, state, STATE)
  const changes = createEmitter()
  let revision = 1
  return {
    get revision() {
      return revision
    },
    get: (group) => states.get(group),
    set(group, state) {
      checkShape(group, state, STATE)
      states.set(group, state)
      revision++
      changes.emit()
    },
    subscribe: changes.subscribe,
  }
}
