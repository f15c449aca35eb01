// `@toolgate/core/groups`: named sets of tools, their requirements, and apps.

export type { Apps } from '../gate/apps.ts'
export type { App } from '../groups/app.ts'
export { type Availability, createAvailability } from '../groups/availability.ts'
export type { Need } from '../groups/needs.ts'
export { memoryAvailability, type MemoryAvailability } from '../memory/availability.ts'
export type { AvailabilitySource, ConnectionSource, GroupState, MissingConnection } from '../ports/ports.ts'
export {
  type Group,
  parseGroups,
  type UnlockRule,
  type Probe,
  type ProbeAnswer,
  type ProbeAsking,
  type ProbeFunction,
} from '../tools/groups.ts'
