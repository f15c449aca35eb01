import type { AuditEvidence, EvidenceProblem } from '@toolgate/stores/verify'
import type { AuditConfig } from './config/config.ts'

export type { AuditEvidence, EvidenceProblem }

/**
 * Returns what is wrong with where a configuration keeps its audit, checkpoints and signing key. Opens none of them.
 *
 * @example
 * await findAuditProblems({ store: 'sqlite', path: '/srv/audit.db', mode: 'batched' })  // []
 */
export async function findAuditProblems({ path, checkpoints = {} }: AuditConfig): Promise<readonly EvidenceProblem[]> {
  if (path === undefined || checkpoints === false) return []
  const { findPlaceProblems } = await import('@toolgate/stores/verify')
  return findPlaceProblems(path, checkpoints)
}
