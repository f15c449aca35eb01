import type { Room } from '../../heart/room.ts'
import { gauge } from '../../telemetry/exposition.ts'

/** The metric of the catalog. */
export const tools: Room = {
  name: 'tools',
  open: ({ gate }) => ({
    metrics: [() => gauge('toolgate_catalog_tools', 'Tools in the catalog.', gate.catalog.snapshot().size)],
  }),
}
