import { type AuditReader, TERMINAL_EVENTS } from '@toolgate/core/audit'
import { type Clock, memoryState, type StateStore } from '@toolgate/core/stores'
import { WorkLeases } from '../../util/leases.ts'
import { ApprovalTasks, type ApprovalTasksDeps } from './approval-tasks.ts'
import { TaskStore, type TaskStoreOptions } from './task-store.ts'
import { Tasks, type TasksDeps } from './tasks.ts'

type Own = 'store' | 'leases' | 'state' | 'isKept' | 'hasEnded'

interface TaskOptions extends Omit<TasksDeps, Own>, Omit<ApprovalTasksDeps, Own>, Pick<TaskStoreOptions, 'readOwner'> {
  /** Absent: tasks last as long as this process. */
  readonly state: StateStore | undefined
  readonly audit: AuditReader
  readonly clock: Clock
}

const LEASES = 'gateway/task-followers/'

/** Both kinds of tasks, in one store. */
export interface GatewayTasks {
  readonly tasks: Tasks
  readonly approvalTasks: ApprovalTasks
  /** Continues the tasks of an earlier gateway. Called when the servers have started. */
  resume(): void
  /** Resolves when the tasks are left to the next gateway, or their ends are recorded. */
  leave(): Promise<void>
}

/** Creates the tasks of a gateway. */
export function createTasks({ state: kept, audit, readOwner, ...options }: TaskOptions): GatewayTasks {
  const { clock, onFault } = options
  const state = kept ?? memoryState({ clock })
  const store = new TaskStore({ state, clock, readOwner })
  const deps = { ...options, store, isKept: kept !== undefined }
  const hasEnded = async (call: string) => (await audit.query({ call })).some(({ event }) => TERMINAL_EVENTS.has(event))
  // Each kind has its own leases, so that a process does not block itself.
  const newLeases = () => new WorkLeases({ state, clock, prefix: LEASES })
  const approvalTasks = new ApprovalTasks({ ...deps, state, hasEnded, leases: newLeases() })
  const tasks = new Tasks({ ...deps, leases: newLeases() })
  return {
    tasks,
    approvalTasks,
    resume: () =>
      void tasks
        .resume()
        .then(() => approvalTasks.resume())
        .catch(onFault),
    leave: async () => void (await Promise.all([tasks.leave(), approvalTasks.leave()])),
  }
}
