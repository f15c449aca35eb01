import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readSync } from 'node:fs'
import { endsWithin, messageOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import type {
  AuditEvent,
  AuditExporter,
  AuditFilter,
  AuditOutcome,
  AuditQuery,
  AuditReader,
  AuditRecord,
  InputBoxes,
} from '@toolgate/core/audit'
import { createApi } from '../client.ts'
import { DEFAULT_CONFIG, findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, jsonText, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'
import { localTime, zoneOf } from '../times.ts'
import type { StopSignals } from '../stop-signals.ts'

export interface AuditOptions extends TargetOptions {
  readonly file?: string
  readonly tool?: string
  readonly user?: string
  readonly session?: string
  readonly run?: string
  readonly event?: AuditEvent
  readonly outcome?: AuditOutcome
  readonly since?: number
  readonly until?: number
  readonly json?: boolean
}

export interface AuditQueryOptions extends AuditOptions {
  readonly limit?: number
  readonly before?: number
  readonly after?: number
}

export interface AuditTailOptions extends AuditOptions {
  readonly lines: number
  readonly follow: boolean
}

/** The gateway's default. */
const DEFAULT_LIMIT = 100
const POLL_MS = 500
const PAGE = 1000

/** `toolgate audit query`: prints matching records, newest first. */
export function auditQueryCommand(options: AuditQueryOptions, io: Io): Promise<ExitName> {
  return withReader<ExitName>(options, io, async (reader) => {
    const { limit, before, after } = options
    const records = await reader.query({
      ...filterOf(options),
      ...(limit === undefined ? {} : { limit }),
      ...(before === undefined ? {} : { beforeSeq: before }),
      ...(after === undefined ? {} : { afterSeq: after }),
    })
    if (options.json) printJson(io.stdout, { records })
    else if (records.length === 0) printLine(io.stdout, 'No records.')
    else {
      printTable(records, io)
      const oldest = records.at(-1)?.seq
      if (records.length === (limit ?? DEFAULT_LIMIT))
        printLine(io.stderr, `These are the newest ${records.length}. For older ones add: --before ${oldest}`)
    }
    return 'ok'
  })
}

/** `toolgate audit tail`: prints the newest records, oldest first, and then new ones until it is stopped. */
export function auditTailCommand(options: AuditTailOptions, io: Io, signals: StopSignals): Promise<ExitName> {
  return withReader<ExitName>(options, io, async (reader) => {
    const filter = filterOf(options)
    const print = (record: AuditRecord): void =>
      printLine(io.stdout, options.json ? jsonText(record) : lineOf(record, io))
    const [newest] = await reader.query({ limit: 1 })
    let seen = newest?.seq ?? 0
    if (options.lines > 0)
      for (const record of (await reader.query({ ...filter, limit: options.lines })).toReversed()) {
        if (record.seq <= seen) print(record)
      }
    if (!options.follow) return 'ok'
    const { stopped, release } = signals.once()
    try {
      while (!(await endsWithin(stopped, POLL_MS))) {
        for (const record of await allAfter(reader, filter, seen)) {
          print(record)
          seen = record.seq
        }
      }
    } finally {
      release()
    }
    return 'ok'
  })
}

export interface AuditExportOptions extends AuditOptions {
  /** A new folder for the whole shared audit, in place of JSON lines. */
  readonly folder?: string
}

/** `toolgate audit export`: prints all matching records, oldest first, as JSON lines, at the reader's pace. */
export async function auditExportCommand(options: AuditExportOptions, io: Io): Promise<ExitName> {
  const { folder } = options
  if (folder !== undefined) {
    const { exportShared } = await import('./audit-shared.ts')
    return exportShared(folder, { config: DEFAULT_CONFIG, ...options }, io)
  }
  return withReader<ExitName>(options, io, async (reader) => {
    for await (const record of reader.exportRecords(filterOf(options))) {
      if (!io.stdout.write(`${JSON.stringify(record)}\n`)) await once(io.stdout, 'drain')
    }
    return 'ok'
  })
}

/** `toolgate audit rotate`: closes the audit's file of JSON lines. Ends with `no` if there was nothing to close. */
export async function auditRotateCommand(options: AuditOptions, io: Io): Promise<ExitName> {
  const { closed } = await createApi(findTarget(options, io)).rotateAudit()
  if (options.json) printJson(io.stdout, { closed })
  else if (closed === null) printLine(io.stderr, 'There is nothing to close: only JSON lines with records are rotated.')
  else printLine(io.stdout, printable(closed))
  return closed === null ? 'no' : 'ok'
}

/** Returns all records after `seen`, oldest first. */
async function allAfter(reader: AuditReader, filter: AuditQuery, seen: number): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = []
  for (;;) {
    const oldest = found.at(-1)?.seq
    const page = await reader.query({
      ...filter,
      limit: PAGE,
      afterSeq: seen,
      ...(oldest === undefined ? {} : { beforeSeq: oldest }),
    })
    found.push(...page)
    if (page.length < PAGE) return found.toReversed()
  }
}

/** Runs `use` with a reader of the audit file in the options, or else of the gateway. */
export async function withReader<T>(
  options: Pick<AuditOptions, 'file' | keyof TargetOptions>,
  io: Io,
  use: (reader: AuditReader & AuditExporter & HashesTexts) => Promise<T>,
): Promise<T> {
  if (options.file === undefined) return use(createApi(findTarget(options, io)))
  const audit = await openAuditFile(options.file)
  try {
    return await use(audit)
  } finally {
    await audit.close()
  }
}

function filterOf({ tool, user, session, run, event, outcome, since, until }: AuditOptions): AuditFilter {
  const filter = { tool, user, session, run, event, outcome, since, until }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}

function printTable(records: readonly AuditRecord[], io: Io): void {
  const paint = painter(io.stdout, io.env)
  const areShared = records.some(({ replica }) => replica !== undefined)
  const times = records.map(({ ts }) => localTime(new Date(ts)))
  const rows = records.map((record, i) => {
    const [day = '', time = ''] = times[i] ?? []
    return [
      String(record.seq),
      ...(areShared ? [printable(record.replica ?? '')] : []),
      // A day stands at its first record only.
      day === times[i - 1]?.[0] ? '' : day,
      time,
      ...cellsOf(record, paint).slice(1),
    ]
  })
  const by = areShared ? ['REPLICA'] : []
  printLine(
    io.stdout,
    renderTable(
      ['SEQ', ...by, 'DAY', `TIME (${zoneOf(new Date(records[0]?.ts ?? 0))})`, 'EVENT', 'USER', 'TOOL', 'REASON'],
      rows,
      io.stdout,
    ),
  )
}

function lineOf(record: AuditRecord, io: Io): string {
  return cellsOf(record, painter(io.stdout, io.env)).filter(Boolean).join('  ')
}

const STYLES: Readonly<Record<AuditEvent, Parameters<Paint>[0]>> = {
  tool_call: 'dim',
  tool_result: 'green',
  tool_blocked: 'red',
  tool_rate_limited: 'cyan',
  tool_approval_required: 'yellow',
  tool_input_required: 'yellow',
  tool_abandoned: 'magenta',
  policy_changed: 'blue',
  policy_recorded: 'dim',
  config_changed: 'blue',
  approval_decided: 'blue',
  grant_made: 'blue',
  grant_revoked: 'red',
  approval_refused: 'red',
  tool_changed: 'yellow',
  tool_flagged: 'yellow',
  tool_accepted: 'blue',
  halt_set: 'red',
  halt_released: 'blue',
  group_changed: 'yellow',
  server_changed: 'yellow',
  server_asked: 'blue',
  connection_made: 'blue',
  connection_ended: 'yellow',
  run_started: 'blue',
  run_ended: 'dim',
  login_failed: 'red',
  login_ended: 'yellow',
  audit_opened: 'dim',
  audit_closed: 'dim',
  audit_dropped: 'red',
  audit_pruned: 'yellow',
  audit_restored: 'yellow',
  inputs_pruned: 'yellow',
  notification_sent: 'dim',
  notification_failed: 'red',
  input_opened: 'blue',
}

function hasFailed({ event, error, is_error: isError }: AuditRecord): boolean {
  return event === 'tool_result' && (error !== undefined || isError === true)
}

function cellsOf(record: AuditRecord, paint: Paint): string[] {
  const { reason, detail, error, duration_ms: duration, would_outcome: would, would_clause: clause } = record
  const found = [reason, detail ?? error].filter((part) => part !== undefined).join(': ')
  const verb = would === 'unknown' ? 'could not judge it' : `would ${would ?? ''}`
  const shadow = would === undefined ? '' : `a shadow ${verb}: ${clause ?? ''}`
  const why = [found, shadow].filter(Boolean).join('; ')
  return [
    printable(record.ts),
    paint(hasFailed(record) ? 'red' : (STYLES[record.event] ?? 'dim'), printable(record.event)),
    printable(record.user_id ?? '-'),
    printable(record.tool ?? '-'),
    // A change of the configuration has one line per part.
    (record.event === 'config_changed' ? why.split('\n') : [why || durationOf(duration)]).map(printable).join('\n'),
  ]
}

function durationOf(ms: number | undefined): string {
  return ms === undefined ? '' : `${Math.round(ms)} ms`
}

const POLICY_PAGE = 1000
/** The shortest accepted prefix of a hash. */
const LEAST_DIGITS = 8

/** `toolgate audit policy <hash>`: prints the recorded policies and groups with that hash. Ends with `no` if there are none. */
export function auditPolicyCommand(hash: string, options: AuditOptions, io: Io): Promise<ExitName> {
  if (!/^[0-9a-f]{1,64}$/.test(hash) || hash.length < LEAST_DIGITS)
    throw new CliError('usage', `${printable(hash)} is not a policy_hash: give 8 to 64 hex digits of one.`)
  return withReader<ExitName>(options, io, async (reader) => {
    const record = await findPolicy(reader, hash)
    if (record?.policy === undefined) {
      printLine(io.stderr, `The audit has no policy with the hash ${hash}.`)
      return 'no'
    }
    if (createHash('sha256').update(record.policy).digest('hex') !== record.policy_hash)
      throw new CliError('tampered', `Record ${record.seq} does not have the policy that its hash names.`)
    printJson(io.stdout, readOwnJson(record.policy))
    return 'ok'
  })
}

async function findPolicy(reader: AuditReader, hash: string): Promise<AuditRecord | undefined> {
  for (let beforeSeq: number | undefined; ;) {
    const before = beforeSeq === undefined ? {} : { beforeSeq }
    const records = await reader.query({ event: 'policy_recorded', limit: POLICY_PAGE, ...before })
    const found = records.find((record) => record.policy_hash?.startsWith(hash))
    if (found !== undefined || records.length < POLICY_PAGE) return found
    beforeSeq = records.at(-1)?.seq
  }
}

/** An audit that is read from its file, even while a gateway writes it. */
type OpenAudit = AuditReader & AuditExporter & InputBoxes & HashesTexts & { close(): Promise<void> }

/** An audit with its key beside it, which can hash texts to find those that `facts` contain only as hashes. */
interface HashesTexts {
  hashText?: ((text: string) => string) | undefined
}

const SQLITE_MAGIC = 'SQLite format 3\0'

/** Opens an audit file. Its first bytes show whether it is SQLite or JSON lines. @throws {CliError} `usage` */
export async function openAuditFile(path: string): Promise<OpenAudit> {
  if (firstBytes(path, SQLITE_MAGIC.length) === SQLITE_MAGIC) {
    const { openSqliteAudit } = await import('@toolgate/stores/sqlite')
    return openSqliteAudit({ path, readOnly: true })
  }
  const { openJsonlAudit } = await import('@toolgate/stores/jsonl')
  const audit = openJsonlAudit({ path, readOnly: true })
  const { findFileProblem } = await import('@toolgate/stores/verify')
  // An audit with a damaged beginning still has records.
  if (findFileProblem(path, 'audit', 'jsonl') === undefined || (await audit.query({ limit: 1 })).length > 0)
    return audit
  await audit.close()
  throw new CliError('usage', `The file ${printable(path)} is not an audit.`)
}

function firstBytes(path: string, length: number): string {
  try {
    const file = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(length)
      return buffer.toString('latin1', 0, readSync(file, buffer, 0, length, 0))
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    throw new CliError('usage', `The audit file cannot be read: ${messageOf(cause)}.`, { cause })
  }
}
