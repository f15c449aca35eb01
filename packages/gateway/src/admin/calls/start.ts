import type { Room } from '../../heart/room.ts'
import { callFamilies } from './call-families.ts'

/** The metrics of calls. */
export const calls: Room = {
  name: 'calls',
  open: ({ servers: { counts } }) => ({ metrics: [() => callFamilies(counts)] }),
}
