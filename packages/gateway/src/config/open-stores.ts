import { readFileSync } from 'node:fs'
import { ConfigError, memoryAudit } from '@toolgate/core'
import type { AuditCounter, AuditExporter, AuditReader, AuditSink, InputBoxes } from '@toolgate/core/audit'
import type { Redactor } from '@toolgate/values/redact'
import {
  type ApprovalStore,
  type ClauseCountStore,
  type CounterStore,
  type GrantStore,
  type HistoryStore,
  memoryApprovals,
  memoryPeople,
  type PersonStore,
  type SessionLock,
  type StateStore,
} from '@toolgate/core/stores'
import type { AuditProblem } from '@toolgate/stores/postgres'
import type { AuditEvidence, EvidenceProblem } from '@toolgate/stores/verify'
import type { ApprovalsConfig, AuditConfig, CheckpointConfig, StateConfig } from './config.ts'

/** The problem of an audit that replicas share: its key is in the database. */
const KEY_IN_DATABASE: EvidenceProblem = {
  code: 'key_in_database',
  message:
    'The key that signs the audit is in the database, so whoever can read the state there can sign another audit. Make a key with "openssl genpkey -algorithm ed25519", and name its file in audit.checkpoints.keyFile, on all replicas.',
}

/** An open audit, with a count of dropped records if the store has one. */
export type OpenedAudit = AuditSink &
  AuditReader &
  AuditExporter &
  AuditCounter & {
    readonly droppedCount?: number
    /** Returns the keyed hash that replaces a text in `facts`. */
    hashText?: ((text: string) => string) | undefined
    /** Absent for a sink that keeps no inputs. */
    inputBoxes?: InputBoxes['inputBoxes']
    /** Absent for an audit in memory. */
    rotate?(): Promise<string | undefined>
    /** Returns the state of the checkpoints. Absent if the audit cannot have checkpoints, such as one in memory. */
    evidence?(): AuditEvidence
    /** The reason why nothing can be recorded now. */
    readonly problem?: AuditProblem | undefined
    /** The records that are only on this replica's disk. Present if records are written there first. */
    readonly unshipped?: { readonly records: number; readonly ageMs: number } | undefined
  }

interface AuditDeps {
  readonly redact?: Redactor
  readonly onFault?: (error: unknown) => void
}

/** Options of an audit that replicas share. */
export interface SharedAuditDeps extends AuditDeps {
  /** Called with the problem when calls are refused because of it, and with `undefined` when calls continue. */
  readonly onProblem?: (problem: AuditProblem | undefined) => void
}

/** Opens the audit of a configuration. Only the configured store is loaded. */
export async function openAudit(config: AuditConfig, deps: AuditDeps = {}): Promise<OpenedAudit> {
  const { store, path = '', mode, preview = true, inputs, checkpoints, durable: _, ...kept } = config
  const options = { path, mode, preview, ...(inputs && { inputs }), ...deps, ...toCheckpoints(checkpoints), ...kept }
  switch (store) {
    case 'postgres':
      throw new ConfigError('audit.store', 'is postgres, which only a gateway with its stores can open')
    case 'memory':
      return memoryAudit({ redact: deps.redact, preview, inputs })
    case 'jsonl': {
      const { openJsonlAudit } = await import('@toolgate/stores/jsonl')
      return openJsonlAudit(options)
    }
    case 'sqlite': {
      const { openSqliteAudit } = await import('@toolgate/stores/sqlite')
      return openSqliteAudit(options)
    }
  }
}

function toCheckpoints(config: AuditConfig['checkpoints']) {
  if (config === undefined) return {}
  if (config === false) return { checkpoints: false as const }
  const { keyFile, ...rest } = config
  return { checkpoints: keyFile === undefined ? rest : { ...rest, key: readKey(keyFile) } }
}

/** Reads the private key that the configuration names. */
export function readKey(file: NonNullable<CheckpointConfig['keyFile']>): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError('audit.checkpoints.keyFile', `${file} cannot be read`, { cause })
  }
}

/** The stores of the gate. Absent ones are in memory. */
interface KeptStores {
  readonly approvals?: ApprovalStore
  readonly grantStore?: GrantStore
  readonly state?: StateStore
  /** Gateways that share a file share its counts, and the counts survive a restart. */
  readonly counters?: CounterStore
  readonly history?: { readonly store: HistoryStore }
  readonly lock?: SessionLock
  /** Absent: only this process counts. */
  readonly clauses?: ClauseCountStore
  readonly people: PersonStore
  /** Absent if the state is in memory. @throws {ToolgateError} `state_unavailable` if nothing can be written now */
  checkWritable?(): void
  close(): void
}

/** Returns the options of a store of approvals. */
export function approvalOptions({ notify: _notify, wait: _wait, ...options }: ApprovalsConfig) {
  return options
}

export async function openState(
  { store, path = '' }: StateConfig = { store: 'memory' },
  given: ApprovalsConfig = {},
): Promise<KeptStores> {
  const forApprovals = approvalOptions(given)
  if (store === 'memory') return { approvals: memoryApprovals(forApprovals), people: memoryPeople(), close: () => {} }
  const { openSqliteStores } = await import('@toolgate/stores/sqlite')
  const { histories, grants: grantStore, ...stores } = openSqliteStores({ path, approvals: forApprovals })
  return { ...stores, grantStore, history: { store: histories } }
}

/**
 * Returns the problems with the paths of the audit, its checkpoints and its signing key. Does not open them.
 *
 * @example
 * await findAuditProblems({ store: 'sqlite', path: '/srv/audit.db', mode: 'batched' })  // []
 */
export async function findAuditProblems({
  store,
  path,
  checkpoints = {},
}: AuditConfig): Promise<readonly EvidenceProblem[]> {
  if (checkpoints === false) return []
  if (store === 'postgres') return checkpoints.keyFile === undefined ? [KEY_IN_DATABASE] : []
  if (path === undefined) return []
  const { findPlaceProblems } = await import('@toolgate/stores/verify')
  return findPlaceProblems(path, checkpoints)
}
