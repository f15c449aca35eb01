// The rows of replicas, as this package uses them. The types come with the store that has them.
export type {
  PostgresReplicas as ReplicaStore,
  Replica,
  ReplicaRow,
  SharedPosition as Renewal,
} from '@toolgate/stores/postgres'
