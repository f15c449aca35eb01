import { memoryState, type SessionLock } from '@toolgate/core/stores'
import type { GateOptions } from '@toolgate/core'
import {
  findAuditProblems,
  openAudit,
  type OpenedAudit,
  openState,
  type SharedAuditDeps,
} from '../config/open-stores.ts'
import type { Heart, Stores } from '../heart/heart.ts'
import type { Lifecycle } from '../util/lifecycle.ts'

type StoresServices = Pick<Heart, 'config' | 'clock' | 'redact' | 'log' | 'onFault' | 'replica'>

/** All stores of a gateway, including those that its gate uses. */
export interface OpenedStores extends Stores {
  readonly lock: SessionLock | undefined
  readonly ofGate: Pick<GateOptions, 'approvals' | 'grantStore' | 'counters' | 'history' | 'state'>
}

/** Opens the audit and the state, until the gateway closes. */
export async function openStores(known: StoresServices, lifecycle: Lifecycle): Promise<OpenedStores> {
  const { config, clock, log, replica } = known
  const audit = await openOwnAudit(known)
  lifecycle.onClose(() => audit.close())
  const auditProblems = await findAuditProblems(config.audit)
  for (const { message } of auditProblems) log({ level: 'warn', message })
  const toStores = (ofGate: OpenedStores['ofGate']) => ({
    audit,
    auditProblems,
    state: ofGate.state ?? memoryState({ clock }),
    kept: ofGate.state,
    ofGate,
  })
  if (replica) {
    const { stores, lock, clauses, people } = replica
    return { ...toStores(stores), lock, clauses, people, checkWritable: undefined }
  }
  const { close, lock, clauses, people, checkWritable, ...stores } = await openState(config.state, config.approvals)
  lifecycle.onClose(close)
  return { ...toStores(stores), lock, clauses, people, checkWritable }
}

async function openOwnAudit({ config, redact, log, onFault, replica }: StoresServices): Promise<OpenedAudit> {
  const onProblem: SharedAuditDeps['onProblem'] = (problem) =>
    problem === undefined
      ? log({ level: 'info', message: 'calls are recorded again' })
      : log({ level: 'error', message: 'calls are refused, as they cannot be recorded', detail: problem.message })
  const isShared = config.audit.store === 'postgres'
  const opening = isShared ? replica?.openAudit(config.audit, { redact, onFault, onProblem }) : undefined
  return opening ?? openAudit(config.audit, { redact, onFault })
}
