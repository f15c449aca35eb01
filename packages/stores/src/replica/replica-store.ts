import type { PostgresReplicas } from '../postgres/replicas.ts'

/** The rows of replicas, without their owners. */
export type ReplicaStore = Omit<PostgresReplicas, 'owners'>
