import { PIN_STATUSES, type PinnedTool } from '@toolgate/core/pins'
import type { Room } from '../../heart/room.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** The figures of pins. */
export const pins: Room = {
  name: 'pins',
  open: ({ gate }) => ({ metrics: [() => pinsFamily(gate.pins.list())] }),
}

function pinsFamily(all: readonly Pick<PinnedTool, 'status'>[]): Family {
  return {
    name: 'toolgate_pins',
    type: 'gauge',
    help: 'Tools by the state of their pinned definition.',
    samples: PIN_STATUSES.map((status) => ({
      labels: { status },
      value: all.filter((pin) => pin.status === status).length,
    })),
  }
}
