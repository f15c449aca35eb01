import type { AuditSink, GateEvent } from '@toolgate/core/audit'
import type { GroupState } from '@toolgate/core/groups'
import { safely } from '@toolgate/values'
import type { Redactor } from '@toolgate/values/redact'
import type { Clock } from '@toolgate/core/stores'
import type { UpstreamState } from '../../model/upstream.ts'
import type { WatchedGroupChange, GroupWatch } from './group-watch.ts'

interface StateChangesDeps {
  readonly watch: Pick<GroupWatch, 'subscribe'>
  /** Returns the server of an implicit group. Implicit groups are watched like the others. */
  serverOf(group: string): { readonly name: string; readonly state: UpstreamState } | undefined
  readonly audit: Pick<AuditSink, 'write'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly redact: Pick<Redactor, 'redactText'>
  revisions(): { readonly policy_revision: number; readonly catalog_revision: number }
  readonly onFault: (error: unknown) => void
}

/**
 * Records the changes of groups and servers, as often as the watch reports them.
 *
 * Groups and servers that are available at the start are not recorded.
 */
export function recordStateChanges(deps: StateChangesDeps): () => void {
  const seen = new Set<string>()
  return deps.watch.subscribe((changes) => {
    for (const change of changes) {
      const isFirst = !seen.has(change.name)
      seen.add(change.name)
      if (isFirst && change.now?.available === true) continue
      const server = deps.serverOf(change.name)
      if (server) recordServer(server.name, server.state)
      else recordGroup(change)
    }
  })

  function recordGroup({ name, before, now }: WatchedGroupChange): void {
    const isAvailable = now?.available === true
    // A change of the reason alone is not recorded, unless the state was unknown before.
    if (before !== undefined && before.unknown !== true && before.available === isAvailable) return
    record('group_changed', isAvailable ? 'available' : 'unavailable', describe(name, now))
  }

  function recordServer(name: string, { status, reason }: UpstreamState): void {
    record('server_changed', status, reason === undefined ? name : `${name}: ${reason}`)
  }

  function record(event: GateEvent, reason: string, detail: string): void {
    const write = safely(() => {
      const entry = { event, reason, detail: deps.redact.redactText(detail), wallMs: deps.clock.wallMs() }
      return deps.audit.write({ ...entry, ...deps.revisions() })
    }, deps.onFault)
    write()
  }
}

function describe(name: string, state: GroupState | undefined): string {
  const why = [state?.reason, state?.detail].filter((part) => part !== undefined).join('; ')
  return why === '' ? name : `${name}: ${why}`
}
