import type { ReactElement, ReactNode } from 'react'
import { linkTo } from '../address.ts'
import { explainRecord, lookOf } from '../audit-feed.ts'
import { formatDuration, toSentence } from '../format.ts'
import { useApi } from '../hooks.ts'
import type { AuditBody, AuditRecord, WhyBody } from '../wire.ts'
import { EventBadge, DecisionBadge } from './badges.tsx'
import { Drawer, Fact, Part } from './drawer.tsx'
import { Exact } from './exact.tsx'
import { HaltButton } from './halt-dialog.tsx'
import { Loading } from './panels.tsx'
import { MayStill, Reasons, WouldAllow } from './reasons.tsx'
import { RunTimeline } from './run-timeline.tsx'
import { At } from './when.tsx'

interface RecordDrawerProps {
  readonly seq: number
  /** The record, if it is loaded. */
  readonly held: AuditRecord | undefined
}

/** A record with all its fields, the other records of its call, and the current decision. */
export function RecordDrawer({ seq, held }: RecordDrawerProps): ReactElement {
  const found = useApi<AuditBody>({
    key: ['audit', 'record', seq],
    path: '/api/audit',
    parameters: { before: seq + 1, after: seq - 1, limit: 1 },
    enabled: !held,
  })
  const record = held ?? found.data?.records.find((one) => one.seq === seq)
  return (
    <Drawer
      id={String(seq)}
      choice="record"
      title={`Record ${seq}`}
      beside={record && <EventBadge record={record} />}
      what="record"
      row={record}
      isUnknown={Boolean(found.data ?? found.error)}
    >
      {(row) => <Detail record={row} />}
    </Drawer>
  )
}

function Detail({ record }: { record: AuditRecord }): ReactElement {
  const { tool, tool_call_id: call, run_id: run, user_id: user, session_id: session } = record
  return (
    <>
      <Ending record={record} />
      <Fields record={record} />
      <p className="row actions halt-buttons">
        {user !== undefined && <HaltButton target={{ user }} label="Halt this user…" />}
        {session !== undefined && <HaltButton target={{ session }} label="Halt this session…" />}
        {tool !== undefined && <HaltButton target={{ tool }} label="Halt this tool…" />}
      </p>
      <InputPreview record={record} />
      {call !== undefined && (
        <Part title="All records of this call">
          <Call call={call} seq={record.seq} />
        </Part>
      )}
      {run !== undefined && (
        <Part title="The run">
          <RunTimeline run={run} seq={record.seq} />
        </Part>
      )}
      {tool !== undefined && user !== undefined && (
        <Part title={`Current decision for ${user}`}>
          <CurrentDecision tool={tool} user={user} />
        </Part>
      )}
    </>
  )
}

/** Shows the redacted beginning of the input. */
export function InputPreview({ record: { input_preview: preview } }: { record: AuditRecord }): ReactElement | null {
  if (preview === undefined) return null
  return (
    <Part title="Input, redacted">
      <pre className="json" tabIndex={0} role="group" aria-label="Input, redacted" dir="ltr">
        <Exact text={preview} />
      </pre>
    </Part>
  )
}

/** Shows first of all why a call ended as it did. It is empty for a record without a reason. */
export function Ending({ record }: { record: AuditRecord }): ReactElement | null {
  const text = explainRecord(record)
  if (text === '') return null
  return (
    <p className={`ending ${lookOf(record)}`}>
      <Exact text={toSentence(text)} />
    </p>
  )
}

/** The first fields. The others follow in the order of the record. */
const FIRST: readonly (keyof AuditRecord)[] = [
  'error',
  'reason',
  'detail',
  'clause',
  'limit',
  'reset_ms',
  'ts',
  'tool',
  'user_id',
  'tenant',
  'duration_ms',
]
/** The fields that prove the record, and say nothing about the call to a reader. */
const EVIDENCE = /(^|_)(hash|prev|revision)$/
const NAMES: ReadonlyMap<string, string> = new Map([
  ['ts', 'time'],
  ['user_id', 'user'],
  ['tool_call_id', 'call'],
  ['duration_ms', 'duration'],
  ['reset_ms', 'free again in'],
  ['session_id', 'session'],
  ['chat_id', 'chat'],
  ['run_id', 'run'],
  ['prev', 'hash before'],
])
const ELSEWHERE: ReadonlySet<string> = new Set(['seq', 'event', 'input_preview'])

/** The fields of a record as a list, with its hashes folded below. */
export function Fields({ record }: { record: AuditRecord }): ReactElement {
  const rest = (Object.keys(record) as (keyof AuditRecord)[]).filter(
    (name) => !FIRST.includes(name) && !ELSEWHERE.has(name),
  )
  const names = [...FIRST, ...rest].filter((name) => record[name] !== undefined)
  const evidence = names.filter((name) => EVIDENCE.test(name))
  return (
    <>
      <FieldList names={names.filter((name) => !EVIDENCE.test(name))} record={record} />
      {evidence.length > 0 && (
        <details className="evidence">
          <summary>Evidence</summary>
          <FieldList names={evidence} record={record} />
        </details>
      )}
    </>
  )
}

interface FieldListProps {
  readonly names: readonly (keyof AuditRecord)[]
  readonly record: AuditRecord
}

function FieldList({ names, record }: FieldListProps): ReactElement {
  return (
    <dl className="facts">
      {names.map((name) => (
        <Fact key={name} name={NAMES.get(name) ?? name.replaceAll('_', ' ')}>
          <Field name={name} record={record} />
        </Fact>
      ))}
    </dl>
  )
}

function Field({ name, record }: { name: keyof AuditRecord; record: AuditRecord }): ReactNode {
  const text = String(record[name])
  if (name === 'tool')
    return (
      <a href={linkTo('tool', { id: text, as: record.user_id ?? '' })}>
        <Exact text={text} className="id" />
      </a>
    )
  if (name === 'ts')
    return (
      <>
        <At at={text} />
        {' · '}
        <Exact text={text} className="id dim" />
      </>
    )
  if (name === 'duration_ms' || name === 'reset_ms') return formatDuration(Number(text))
  const isFree = name === 'detail' || name === 'error' || name === 'user_id'
  return <Exact text={text} className={isFree ? 'whole' : 'id'} />
}

function Call({ call, seq }: { call: string; seq: number }): ReactElement {
  const { data } = useApi<AuditBody>({
    key: ['audit', 'call', call],
    path: '/api/audit',
    parameters: { call, limit: 50 },
    everyMs: 2000,
  })
  if (!data) return <Loading what="the call" />
  return (
    <ol className="recent">
      {data.records.toReversed().map((one) => (
        <li key={one.seq} aria-current={one.seq === seq ? 'true' : undefined}>
          <EventBadge record={one} />
          <At at={one.ts} />
          <span className="dim">
            record {one.seq}
            {one.duration_ms !== undefined && `, ${formatDuration(one.duration_ms)}`}
          </span>
        </li>
      ))}
    </ol>
  )
}

function CurrentDecision({ tool, user }: { tool: string; user: string }): ReactElement {
  const { data, error } = useApi<WhyBody>({
    key: ['why', tool, user],
    path: '/api/why',
    parameters: { tool, as: user },
  })
  if (error && !data) return <p className="dim">{error.message}</p>
  if (!data) return <Loading what="the decision" />
  return (
    <>
      <p className="row">
        <DecisionBadge outcome={data.outcome} mayStill={data.mayStill} />
        <span className="dim">{data.visible ? 'Listed.' : 'Not listed.'}</span>
      </p>
      <Reasons reasons={data.reasons} none={data.mayStill ? undefined : 'No rule denies it or asks about it.'} />
      <MayStill mayStill={data.mayStill} />
      <WouldAllow ways={data.wouldAllow} />
    </>
  )
}
