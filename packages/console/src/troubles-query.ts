import { useQuery } from '@tanstack/react-query'
import { parseDigits } from './digits.ts'
import { type Answer, useApi, useNow } from './hooks.ts'
import { type GatewayChange, toChanges, toTroubles, type Trouble, type TroubleSources, WINDOW_MS } from './troubles.ts'
import type { AuditBody, OverviewBody, PolicyRevisionsBody, ReadyBody } from './wire.ts'

const REFRESH_MS = 15_000
const SOON_MS = 5000
const MINUTE_MS = 60_000

/** What is wrong now, and how much of that is known. */
interface TroubleReport {
  readonly troubles: readonly Trouble[]
  /** Whether every part has been answered. */
  readonly isChecked: boolean
  /** The parts that the gateway could not answer. */
  readonly unknown: readonly string[]
}

/** Fetches what is wrong now. People see only what they may see on other pages. */
export function useTroubles(waiting: OverviewBody['waiting'] | undefined, enabled = true): TroubleReport {
  const nowMs = useNow(REFRESH_MS)
  const ask = <Part extends keyof TroubleSources>(part: Part, key: readonly unknown[], path: string) => ({
    part,
    answer: useApi<NonNullable<TroubleSources[Part]>>({ key, path, everyMs: REFRESH_MS, isUnannounced: true, enabled }),
  })
  const asked = [
    ask('servers', ['servers'], '/api/servers'),
    ask('groups', ['groups'], '/api/groups'),
    ask('halts', ['halts'], '/api/halts'),
    ask('limits', ['limits'], '/api/limits'),
    ask('receivers', ['notifications'], '/api/notifications'),
    ask('evidence', ['audit', 'evidence'], '/api/audit/evidence'),
    ask('warnings', ['warnings'], '/api/warnings'),
    { part: 'revisions', answer: useRevisions(enabled) },
  ]
  const counts = useCounts(nowMs, enabled)
  const ready = useReady(enabled)
  const answers: readonly { readonly part: string; readonly answer: Answer<unknown> }[] = [
    ...asked,
    { part: 'counts', answer: counts },
  ]
  const sources: TroubleSources = {
    ...Object.fromEntries(answers.map(({ part, answer }) => [part, answer.data])),
    ready,
    waiting,
  }
  return {
    troubles: toTroubles(sources, nowMs),
    isChecked: answers.every(({ answer: { data, error } }) => data !== undefined || error !== null),
    unknown: answers.flatMap(({ part, answer: { data, error } }) =>
      data === undefined && error && !isWithheld(error) ? [part] : [],
    ),
  }
}

/** Whether this gateway or this person has no such part. */
function isWithheld({ status }: { readonly status: number }): boolean {
  return status === 403 || status === 404
}

function useCounts(nowMs: number, enabled: boolean): Answer<NonNullable<TroubleSources['counts']>> {
  const until = Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS
  return useApi({
    key: ['audit-counts', 'troubles'],
    path: '/api/audit/counts',
    parameters: { since: until - 2 * WINDOW_MS, until, bucket: MINUTE_MS },
    everyMs: REFRESH_MS,
    isUnannounced: true,
    enabled,
  })
}

/** Fetches the health. Its status is 503 while the gateway refuses calls, which is an answer and no failure. */
function useReady(enabled: boolean): Partial<ReadyBody> | undefined {
  return useQuery({
    queryKey: ['ready'],
    queryFn: async ({ signal }): Promise<Partial<ReadyBody>> => {
      const answer = await fetch('/readyz', { signal })
      return parseDigits(await answer.text()) as Partial<ReadyBody>
    },
    refetchInterval: REFRESH_MS,
    enabled,
  }).data
}

const EVENTS = ['config_changed', 'tool_changed', 'server_changed'] as const
/** The number of records of each event. The one before a trouble is among the latest. */
const MAX_RECORDS = 50

/** Fetches the latest changes of the configuration, tools, servers and policy. */
export function useChanges(enabled: boolean): readonly GatewayChange[] {
  const records = EVENTS.flatMap(
    (event) =>
      useApi<AuditBody>({
        key: ['audit', 'changes', event],
        path: '/api/audit',
        parameters: { event, limit: MAX_RECORDS },
        everyMs: REFRESH_MS,
        isUnannounced: true,
        enabled,
      }).data?.records ?? [],
  )
  return toChanges(records, useRevisions(enabled).data)
}

/** Fetches the policies that were in force. */
export function useRevisions(enabled = true): Answer<PolicyRevisionsBody> {
  return useApi({
    key: ['policy', 'revisions'],
    path: '/api/policy/revisions',
    // A revision is kept slightly after its record is announced.
    everyMs: SOON_MS,
    isUnannounced: true,
    enabled,
  })
}
