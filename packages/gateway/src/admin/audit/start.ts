import type { AuditReader } from '@toolgate/core/audit'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { AuditEvidenceBody } from '../../model/rows.ts'
import { counter, type Family, gauge } from '../../telemetry/exposition.ts'

/** The metrics of the audit, and whether calls can be recorded. */
export const audit: Room = {
  name: 'audit',
  open({ config, stores }) {
    const { audit: sink } = stores
    const help = 'Lost audit records. Their calls were refused, unless they had already run.'
    return {
      metrics: [
        () => writtenFamily(sink),
        () => evidenceFamilies(evidenceOf({ config, stores })),
        () => counter('toolgate_audit_dropped_records_total', help, sink.droppedCount ?? 0),
      ],
      health(withReasons) {
        const { problem } = sink
        if (!problem) return { body: {} }
        return { isRefusing: true, body: { audit: withReasons ? problem : { code: problem.code } } }
      },
    }
  },
}

/** Returns the checkpoints of the audit, and their problems. */
export function evidenceOf({ config, stores }: Pick<Heart, 'config' | 'stores'>): AuditEvidenceBody {
  const { checkpoints, problems = [] } = stores.audit.evidence?.() ?? {}
  const { store } = config.audit
  return { store, ...(checkpoints && { checkpoints }), problems: [...stores.auditProblems, ...problems] }
}

async function writtenFamily(reader: AuditReader): Promise<Family> {
  const [newest] = await reader.query({ limit: 1 })
  return counter('toolgate_audit_records_total', 'Records in the audit since its start.', newest?.seq ?? 0)
}

/** Problems that have a metric even if it is 0, for alerts. */
const EVIDENCE_ALARMS = ['checkpoints_missing', 'checkpoints_failing', 'witness_failing']

function evidenceFamilies({
  checkpoints,
  problems,
}: Pick<AuditEvidenceBody, 'checkpoints' | 'problems'>): readonly Family[] {
  const codes = [...new Set([...EVIDENCE_ALARMS, ...problems.map(({ code }) => code)])]
  const found = (wanted: string) => problems.filter(({ code }) => code === wanted).length
  return [
    {
      name: 'toolgate_audit_problems',
      type: 'gauge',
      help: 'Problems of the checkpoints that sign the audit.',
      samples: codes.map((code) => ({ labels: { code }, value: found(code) })),
    },
    ...(checkpoints
      ? [gauge('toolgate_audit_signed_records', 'The last record that a checkpoint has signed.', checkpoints.signedSeq)]
      : []),
    ...(checkpoints?.signedAt
      ? [
          gauge(
            'toolgate_audit_signed_seconds',
            'When the last checkpoint was signed, in seconds since 1970.',
            Date.parse(checkpoints.signedAt) / 1000,
          ),
        ]
      : []),
  ]
}
