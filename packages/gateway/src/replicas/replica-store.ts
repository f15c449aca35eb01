// The rows of replicas, as this package uses them. The types come with the store that has them.
export type { Owned, PostgresOwners as OwnerStore, Replica, ReplicaRow } from '@toolgate/stores/postgres'
export type { ReplicaStore } from '@toolgate/stores/replica'
