import type { AuditProblem } from '@toolgate/stores/postgres'
import type { ReplicaReport } from '../../replicas/report.ts'
import { counter, type Family, gauge } from '../../telemetry/exposition.ts'

/** Returns the metrics of one of several replicas; none if this gateway runs alone. */
export function replicaFamilies(
  replica: Pick<ReplicaReport, 'state' | 'failedRenewals'> | undefined,
): readonly Family[] {
  if (!replica) return []
  const { problem, leaseAgeMs, revision, configuration, limits } = replica.state()
  return [
    gauge('toolgate_replica_starts_calls', 'Whether this replica may start calls: 1, or 0.', problem ? 0 : 1),
    ...(leaseAgeMs === undefined
      ? []
      : [gauge('toolgate_replica_lease_age_seconds', 'Since its lease was confirmed.', leaseAgeMs / 1000)]),
    counter('toolgate_replica_failed_renewals_total', 'Renewals of its lease that failed.', replica.failedRenewals()),
    {
      name: 'toolgate_replica_revision',
      type: 'gauge',
      help: 'Revision of the shared state: the one it has applied, and the newest it knows of.',
      samples: Object.entries(revision).map(([of, value]) => ({ labels: { of }, value })),
    },
    {
      name: 'toolgate_config_published',
      type: 'gauge',
      help: 'The published configuration that it runs, by its id.',
      samples: [{ labels: { id: configuration.id }, value: 1 }],
    },
    {
      name: 'toolgate_config_file_differs',
      type: 'gauge',
      help: 'Whether its own file is not what is published: 1, with the id of the file, or 0.',
      samples: [configuration.file === undefined ? { value: 0 } : { labels: { file: configuration.file }, value: 1 }],
    },
    gauge('toolgate_limits_refused', 'Whether limited calls are refused, as they cannot be counted.', limits ? 1 : 0),
  ]
}

/** The state of a shared audit. */
interface SharedAuditFigures {
  readonly problem?: { readonly code: string } | undefined
  readonly unshipped?: { readonly records: number; readonly ageMs: number } | undefined
}

/** The codes of `AUDIT_PROBLEMS`, which is only loaded with Postgres. */
const PROBLEMS: readonly AuditProblem['code'][] = ['silent', 'unshipped', 'disk', 'forked']

/** Returns the metrics of a shared audit. */
export function auditFamilies({ problem, unshipped }: SharedAuditFigures): readonly Family[] {
  return [
    {
      name: 'toolgate_audit_refuses_calls',
      type: 'gauge',
      help: 'Whether calls are refused, as they cannot be recorded: 1, or 0, by reason.',
      samples: PROBLEMS.map((reason) => ({ labels: { reason }, value: problem?.code === reason ? 1 : 0 })),
    },
    ...(unshipped
      ? [
          gauge('toolgate_audit_unshipped_records', 'Records on the disk of this replica alone.', unshipped.records),
          gauge('toolgate_audit_unshipped_seconds', 'Since the oldest of them is there.', unshipped.ageMs / 1000),
        ]
      : []),
  ]
}
