import { linkTo } from './address.ts'
import { count, formatIn, formatNumber } from './format.ts'
import { wordsOfTarget } from './halts.ts'
import type {
  AuditCountsBody,
  AuditEvidenceBody,
  AuditRecord,
  GroupsBody,
  HaltsBody,
  LimitsBody,
  NotificationsBody,
  OverviewBody,
  PolicyRevisionsBody,
  ReadyBody,
  ServersBody,
  WarningsBody,
} from './wire.ts'

/** One thing that is wrong now. */
export interface Trouble {
  readonly key: string
  /** What is wrong, as a sentence without its full stop. */
  readonly what: string
  readonly why?: string
  /** Since when, in wall-clock milliseconds. Absent if the gateway does not know. */
  readonly sinceMs?: number
  /** The page on which a person acts. */
  readonly href: string
}

/** A change of the gateway that may have caused a trouble. */
export interface Change {
  readonly atMs: number
  readonly what: string
  readonly by?: string
  readonly href: string
}

/** What the gateway says about its state. A part that has not come yet, or that this person may not see, is absent. */
export interface TroubleSources {
  readonly servers?: ServersBody | undefined
  readonly groups?: GroupsBody | undefined
  readonly halts?: HaltsBody | undefined
  readonly limits?: LimitsBody | undefined
  readonly receivers?: NotificationsBody | undefined
  readonly evidence?: AuditEvidenceBody | undefined
  readonly warnings?: WarningsBody | undefined
  readonly ready?: Partial<ReadyBody> | undefined
  readonly revisions?: PolicyRevisionsBody | undefined
  readonly waiting?: OverviewBody['waiting'] | undefined
  /** The calls of the last half hour. */
  readonly counts?: AuditCountsBody | undefined
}

/** How long an approval may wait before it is a trouble, in milliseconds. */
const WAIT_MS = 10 * 60_000
/** The window whose calls are compared with those of the window before, in milliseconds. */
export const WINDOW_MS = 15 * 60_000

/** Returns what is wrong now, the most urgent first. */
export function toTroubles(sources: TroubleSources, nowMs: number): readonly Trouble[] {
  return [
    ...ofStores(sources.ready),
    ...ofServers(sources.servers),
    ...ofGroups(sources.groups),
    ...ofCalls(sources.counts, nowMs),
    ...ofHalts(sources.halts),
    ...ofWaiting(sources.waiting, nowMs),
    ...ofLimits(sources.limits, nowMs),
    ...ofReceivers(sources.receivers),
    ...ofEvidence(sources.evidence),
    ...ofRestored(sources.revisions),
    ...ofWarnings(sources.warnings),
  ]
}

function ofStores({ audit, state, reload }: Partial<ReadyBody> = {}): readonly Trouble[] {
  const href = linkTo('servers')
  return [
    ...(audit
      ? [{ key: 'audit', what: 'No call can be recorded, so calls are refused', why: whyOf(audit), href }]
      : []),
    ...(state ? [{ key: 'state', what: 'The state cannot be written', why: whyOf(state), href }] : []),
    ...(reload
      ? [{ key: 'reload', what: 'The changed file is not in force', why: reload, href: linkTo('policy') }]
      : []),
  ]
}

function whyOf({ code, message = code }: { readonly code: string; readonly message?: string }): string {
  return message
}

function ofServers({ servers }: ServersBody = { servers: [], mayOperate: false }): readonly Trouble[] {
  return servers
    .filter(({ status }) => status === 'down')
    .map(({ name, reason, since }) => ({
      key: `server ${name}`,
      what: `The server ${name} is down`,
      ...(reason !== undefined && { why: reason }),
      sinceMs: since,
      href: linkTo('servers', { server: name }),
    }))
}

function ofGroups({ groups }: GroupsBody = { groups: [] }): readonly Trouble[] {
  return groups
    .filter(({ badge, failure }) => badge === 'unavailable' || failure !== undefined)
    .map(({ name, title = name, reason, failure = reason, since }) => ({
      key: `group ${name}`,
      what: `The group ${title} is not available`,
      ...(failure !== undefined && { why: failure }),
      ...(since !== undefined && { sinceMs: since }),
      href: linkTo('tools'),
    }))
}

function ofHalts({ halts }: HaltsBody = { halts: [], mayHalt: false }): readonly Trouble[] {
  return halts.map(({ id, target, reason, by, since }) => ({
    key: `halt ${id}`,
    what: `${wordsOfTarget(target)} is halted${by === undefined ? '' : ` by ${by}`}`,
    why: reason,
    sinceMs: since,
    href: linkTo('calls', { reason: 'halted' }),
  }))
}

function ofWaiting({ count: n, oldestAt }: OverviewBody['waiting'] = { count: 0 }, nowMs: number): readonly Trouble[] {
  if (oldestAt === undefined || nowMs - oldestAt < WAIT_MS) return []
  const what = `${count(n, 'approval')} ${n === 1 ? 'waits' : 'wait'}, the oldest for more than 10 minutes`
  return [{ key: 'waiting', what, sinceMs: oldestAt, href: linkTo('approvals') }]
}

function ofLimits({ limits }: LimitsBody = { limits: [] }, nowMs: number): readonly Trouble[] {
  return limits
    .filter(({ remaining }) => remaining <= 0)
    .map(({ rule, limit, holder, until }) => {
      const of = Object.values(holder).join(', ')
      return {
        key: `limit ${rule} ${limit} ${JSON.stringify(holder)}`,
        what: `The limit ${rule} ${limit}${of === '' ? '' : ` of ${of}`} is used up`,
        ...(until !== undefined && { why: `some is free ${formatIn(until, nowMs)}` }),
        href: linkTo('runs'),
      }
    })
}

function ofReceivers({ receivers }: NotificationsBody = { receivers: [] }): readonly Trouble[] {
  return receivers.flatMap(({ name, failing }) =>
    failing === undefined
      ? []
      : [
          {
            key: `receiver ${name}`,
            what: `${name} takes no notifications`,
            why: failing.why,
            sinceMs: Date.parse(failing.since),
            href: linkTo('approvals'),
          },
        ],
  )
}

function ofEvidence(evidence: AuditEvidenceBody | undefined): readonly Trouble[] {
  return (evidence?.problems ?? []).map(({ code, message }) => ({
    key: `evidence ${code}`,
    what: 'The audit is not fully proven',
    why: message,
    href: linkTo('calls'),
  }))
}

function ofRestored(revisions: PolicyRevisionsBody | undefined): readonly Trouble[] {
  const restored = revisions?.restored
  if (!restored) return []
  const by = restored.by === undefined ? '' : `, restored by ${restored.by}`
  const what = `Revision ${restored.revision} of the policy applies in place of the file's${by}`
  return [{ key: 'restored', what, sinceMs: restored.at, href: linkTo('policy', { view: 'revisions' }) }]
}

function ofWarnings({ warnings }: WarningsBody = { warnings: [] }): readonly Trouble[] {
  const [first, ...others] = warnings
  if (!first) return []
  const more = others.length === 0 ? '' : `, and ${count(others.length, 'other warning')}`
  return [{ key: 'warnings', what: `The configuration has a warning${more}`, why: first.text, href: linkTo('policy') }]
}

const KINDS = [
  { key: 'failed', of: ['failed', 'abandoned'], verb: 'failed' },
  { key: 'refused', of: ['refused', 'limited'], verb: 'were refused' },
] as const
/** Fewer calls are not a sign of anything. */
const MIN_CALLS = 3

/** Compares the last 15 minutes with the 15 before: a share of bad calls that has grown by half is more than usual. */
function ofCalls(counts: AuditCountsBody | undefined, nowMs: number): readonly Trouble[] {
  if (!counts) return []
  const { since, bucketMs, buckets } = counts
  const minutes = buckets.map((outcomes, i) => ({ atMs: since + i * bucketMs, outcomes }))
  const edge = nowMs - WINDOW_MS
  const [before, now] = [minutes.filter(({ atMs }) => atMs < edge), minutes.filter(({ atMs }) => atMs >= edge)]
  return KINDS.flatMap(({ key, of, verb }) => {
    const bad = ({ outcomes }: (typeof minutes)[number]): number => of.reduce((n, name) => n + outcomes[name], 0)
    const all = ({ outcomes }: (typeof minutes)[number]): number => Object.values(outcomes).reduce((a, b) => a + b, 0)
    const [badNow, allNow, badBefore, allBefore] = [sum(now, bad), sum(now, all), sum(before, bad), sum(before, all)]
    // Without earlier calls nothing is usual; then only most calls failing is a sign.
    const isMore =
      allBefore > 0 ? badNow / allNow > (1.5 * badBefore) / allBefore : key === 'failed' && badNow > allNow / 2
    if (badNow < MIN_CALLS || !isMore) return []
    const usual = badBefore / Math.max(1, before.length)
    const first = now.find((minute) => bad(minute) > usual) ?? now[0]
    return [
      {
        key,
        what: `${formatNumber(badNow)} of ${formatNumber(allNow)} calls ${verb} in the last 15 minutes`,
        why: allBefore > 0 ? `before: ${formatNumber(badBefore)} of ${formatNumber(allBefore)}` : 'no calls before',
        ...(first && { sinceMs: first.atMs }),
        href: linkTo('calls', { range: 'last hour', outcome: key }),
      },
    ]
  })
}

function sum<One>(all: readonly One[], of: (one: One) => number): number {
  return all.reduce((total, one) => total + of(one), 0)
}

/** Returns the changes of records and revisions, the latest first. The state of a server is an effect, not a change. */
export function toChanges(records: readonly AuditRecord[], revisions?: PolicyRevisionsBody): readonly Change[] {
  const recorded = records.filter(({ event, reason }) => event !== 'server_changed' || reason === 'identity_changed')
  return [...recorded.map(toChange), ...(revisions?.revisions ?? []).map(ofRevision)].toSorted(
    (a, b) => b.atMs - a.atMs,
  )
}

function toChange({ ts, seq, event, reason = '', detail = '', tool, user_id: by }: AuditRecord): Change {
  const [line = ''] = detail.split('\n')
  const about = event === 'tool_changed' ? `the definition of ${tool ?? 'a tool'} changed` : `${reason} ${line}`.trim()
  return {
    atMs: Date.parse(ts),
    what: about === '' ? event : about,
    ...(by !== undefined && { by }),
    href: linkTo('live', { event, record: `${seq}` }),
  }
}

/** Returns a revision of the policy as a change. */
function ofRevision({
  revision,
  at,
  by,
  restores,
}: PolicyRevisionsBody['revisions'][number]): Change & { readonly revision: number } {
  return {
    revision,
    atMs: at,
    what: `policy revision ${revision}${restores === undefined ? '' : `, as revision ${restores}`}`,
    ...(by !== undefined && { by }),
    href: linkTo('policy', { view: 'revisions', revision: `${revision}` }),
  }
}

/** The longest time between a change and a trouble that it may have caused, in milliseconds. */
const NEAR_MS = 3_600_000
/** A trouble may be seen slightly before its cause is recorded. */
const SLACK_MS = 2000

/** Returns the latest change in the hour before a time. `changes`: the latest first. */
export function changeBefore(sinceMs: number, changes: readonly Change[]): Change | undefined {
  const last = changes.find(({ atMs }) => atMs <= sinceMs + SLACK_MS)
  return last && last.atMs >= sinceMs - NEAR_MS ? last : undefined
}
