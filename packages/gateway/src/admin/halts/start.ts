import type { Room } from '../../heart/room.ts'
import { gauge } from '../../telemetry/exposition.ts'

/** The metric of halts. */
export const halts: Room = {
  name: 'halts',
  open: ({ gate }) => ({ metrics: [() => gauge('toolgate_halts', 'Halts in force.', gate.halts.length)] }),
}
