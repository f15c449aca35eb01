import type { QueryClient } from '@tanstack/react-query'
import { health } from './health.ts'
import { Live } from './live.ts'
import type { Approval, AuditEvent, GroupRow, ToolColumnsBody } from './wire.ts'

/** The page's socket. It is opened after the login. */
export const live = new Live({
  open(onMessage, end) {
    const socket = new WebSocket('/api/live')
    socket.addEventListener('message', ({ data }: MessageEvent<unknown>) => onMessage(data))
    socket.addEventListener('close', end)
    return () => socket.close()
  },
})

/** Events after which callers may see different tools. */
const CHANGES_TOOLS: ReadonlySet<AuditEvent> = new Set<AuditEvent>([
  'policy_changed',
  'tool_changed',
  'tool_flagged',
  'tool_accepted',
  'halt_set',
  'halt_released',
  'group_changed',
  'server_changed',
])
/** The queries of the inbox, and of the waiting requests on every page. */
const LISTS_OF_WAITING = [
  ['approvals', 'pending'],
  ['approvals', 'waiting'],
] as const
/** The shortest time between two fetches of the lists, in milliseconds. */
const REFETCH_MS = 500

/**
 * Opens the socket and applies its messages to the pages: badges at once, and lists by fetching them again. Returns a
 * function that stops it.
 */
export function followLive(client: QueryClient): () => void {
  const refetchTools = atMostEvery(REFETCH_MS, () => {
    for (const queryKey of [['tools'], ['tool'], ['callers'], ['columns'], ['apps'], ['needs'], ['halts'], ['pins']])
      void client.invalidateQueries({ queryKey })
  })
  // All users get the same messages of the socket. Only the list has this person's `mayDecide`.
  const refetchPending = atMostEvery(REFETCH_MS, () => {
    for (const queryKey of LISTS_OF_WAITING) void client.invalidateQueries({ queryKey })
  })
  const refetchPolicy = atMostEvery(REFETCH_MS, () => client.invalidateQueries({ queryKey: ['policy'] }))
  const refetchHistory = atMostEvery(REFETCH_MS, () => client.invalidateQueries({ queryKey: ['approvals', 'history'] }))
  let wasLost = false
  const stopState = live.subscribe(() => {
    if (live.current === 'lost') {
      wasLost = true
      health.failed()
    }
    if (live.current !== 'open') return
    health.ok()
    // Changes may have been missed while the socket was closed.
    if (wasLost) void client.invalidateQueries()
    wasLost = false
  })
  const stopMessages = live.onMessage((message) => {
    health.ok()
    if (message.type === 'groups') {
      const isChange = showGroups(client, message.groups)
      if (isChange) refetchTools()
    } else if (message.type === 'approval') {
      if (message.approval.status === 'pending') refetchPending()
      else dropPending(client, message.approval)
      refetchHistory()
    } else {
      if (CHANGES_TOOLS.has(message.record.event)) refetchTools()
      if (message.record.event === 'config_changed') refetchPolicy()
      // The record of a call is the only sign that its approval was used.
      if (message.record.approval_id !== undefined) refetchHistory()
    }
  })
  // If HTTP fails, the socket may only appear to be open.
  const stopHealth = health.subscribe(() => {
    if (!health.current.isStale || live.current !== 'open') return
    live.close()
    live.start()
  })
  live.start()
  return () => {
    stopHealth()
    stopState()
    stopMessages()
    live.close()
    refetchTools.cancel()
    refetchHistory.cancel()
    refetchPolicy.cancel()
    refetchPending.cancel()
  }
}

/** Replaces groups by name. Returns whether anything changed. */
function showGroups(client: QueryClient, rows: readonly GroupRow[]): boolean {
  const byName = new Map(rows.map((row) => [row.name, row]))
  let isChange = false
  client.setQueriesData<ToolColumnsBody>({ queryKey: ['tools'] }, (body) => {
    if (!body) return body
    if (body.groups.every((group) => isSame(group, byName.get(group.name)))) return body
    isChange = true
    return { ...body, groups: body.groups.map((group) => byName.get(group.name) ?? group) }
  })
  return isChange
}

function isSame(group: GroupRow, row: GroupRow | undefined): boolean {
  return row === undefined || JSON.stringify(group) === JSON.stringify(row)
}

function dropPending(client: QueryClient, { id: decided }: Approval): void {
  for (const key of LISTS_OF_WAITING)
    client.setQueryData<{ readonly approvals: readonly { readonly id: string }[] }>(
      key,
      (body) => body && { approvals: body.approvals.filter(({ id }) => id !== decided) },
    )
}

/** Limits how often the work runs. The first request runs at once, and the last one is not lost. */
function atMostEvery(ms: number, work: () => unknown): (() => void) & { cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isDue = false
  const run = (): void => {
    if (timer !== undefined) {
      isDue = true
      return
    }
    isDue = false
    void work()
    timer = setTimeout(() => {
      timer = undefined
      if (isDue) run()
    }, ms)
  }
  return Object.assign(run, { cancel: () => clearTimeout(timer) })
}
