import type { PostgresReplicas } from '../postgres/replicas.ts'

/** The rows of replicas, as a membership uses them. */
export type ReplicaStore = Omit<PostgresReplicas, 'owners'>
