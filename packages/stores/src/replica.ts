// `@toolgate/stores/replica`: the lease of a process that shares a database, without a database driver.
export { whyLapsed } from './replica/lapse-text.ts'
export { LEASE_MS, type LeaseProblem, type LeaseState } from './replica/lease.ts'
export { LIBRARY, Membership, type MembershipOptions } from './replica/membership.ts'
export type { ReplicaStore } from './replica/replica-store.ts'
