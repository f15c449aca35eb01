import { canonicalize } from '../util/json.ts'
import { messageOf } from '../errors.ts'
import { hmacSha256Hex, sha256Hex } from '../util/hash.ts'
import type { AuditEntry, AuditRecord } from '../ports.ts'
import { type Redactor, redactor } from '../redact/redact.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { previewInput } from './preview.ts'

const MAX_TOOL_LENGTH = 256
const MAX_TEXT_LENGTH = 1024

export interface SealOptions {
  /** What `detail`, `error` and the preview of the input pass through. Default: the built-in redactor. */
  readonly redact?: Redactor | undefined
  /** Whether the redacted beginning of the input is kept. Default `true`. */
  readonly preview?: boolean | undefined
  /** Keys the hash of inputs: a secret of the audit. Without one it is the bare SHA-256, which short inputs can be guessed from. */
  readonly inputKey?: Uint8Array | undefined
}

const SEAL = shapeOf<SealOptions>({ redact: true, preview: true, inputKey: true })

/** @throws {ConfigError} for an unknown option: a misspelt `preview: false` would keep the input */
export function checkSealOptions(options: SealOptions): void {
  checkShape('seal', options, SEAL)
}

/** An entry that waits for long: what its input comes to in the record is kept instead of the input. */
export interface HeldEntry extends AuditEntry {
  readonly held: Pick<AuditRecord, 'input_hash' | 'input_preview'>
}

/**
 * Gives the record that is shown for an entry, not chained to others.
 *
 * The input becomes its hash and its redacted preview; it has neither when it has no canonical JSON. `detail` and
 * `error` are redacted; names and ids are not, as they are what records are found by. Texts are capped (the
 * tool at 256 characters, all others at 1,024), unpaired surrogates become U+FFFD, and absent
 * fields are left out. Fields are in alphabetical order, so that `JSON.stringify` of a record is
 * its RFC 8785 form. Never throws.
 *
 * @example
 * sealEntry({ event: 'tool_call', wallMs: 0, tool: 'search', tool_call_id: 'c1', … }, 1)
 * // { …, event: 'tool_call', …, seq: 1, tool: 'search', tool_call_id: 'c1', ts: '1970-01-01T00:00:00.000Z' }
 */
export function sealEntry(entry: AuditEntry, seq: number, options: SealOptions = {}): AuditRecord {
  checkSealOptions(options)
  const record: Partial<Writable<AuditRecord>> = {}
  const { input_hash: inputHash, input_preview: inputPreview } = digestOf(entry, options)
  if (entry.agent !== undefined) record.agent = capText(entry.agent)
  if (entry.app !== undefined) record.app = capText(entry.app)
  if (entry.approval_id !== undefined) record.approval_id = capText(entry.approval_id)
  record.catalog_revision = entry.catalog_revision
  if (entry.chat_id !== undefined) record.chat_id = capText(entry.chat_id)
  if (entry.detail !== undefined) record.detail = freeText(entry.detail, options)
  if (isFinite(entry.duration_ms)) record.duration_ms = entry.duration_ms
  if (entry.error !== undefined) record.error = freeText(entry.error, options)
  record.event = entry.event
  if (inputHash !== undefined) record.input_hash = inputHash
  if (inputPreview !== undefined) record.input_preview = inputPreview
  if (entry.is_error) record.is_error = true
  if (entry.limit !== undefined) record.limit = capText(entry.limit)
  const { run } = entry
  const model = entry.model ?? run?.model
  if (model !== undefined) record.model = capText(model)
  if (entry.policy !== undefined) record.policy = entry.policy
  const policyHash = entry.policy_hash ?? entry.in_force?.hash
  if (policyHash !== undefined) record.policy_hash = policyHash
  record.policy_revision = entry.policy_revision
  if (entry.reason !== undefined) record.reason = capText(entry.reason)
  if (isFinite(entry.reset_ms)) record.reset_ms = entry.reset_ms
  const runId = entry.run_id ?? run?.id
  if (runId !== undefined) record.run_id = capText(runId)
  record.seq = seq
  if (entry.session_id !== undefined) record.session_id = capText(entry.session_id)
  if (isFinite(entry.signed_seq)) record.signed_seq = entry.signed_seq
  const step = entry.step ?? run?.step
  if (isFinite(step)) record.step = step
  if (entry.tenant !== undefined) record.tenant = capText(entry.tenant)
  if (entry.tool !== undefined) record.tool = capText(entry.tool, MAX_TOOL_LENGTH)
  if (entry.tool_call_id !== undefined) record.tool_call_id = capText(entry.tool_call_id)
  if (entry.trace_id !== undefined) record.trace_id = capText(entry.trace_id)
  record.ts = toTimestamp(entry.wallMs)
  if (entry.user_id !== undefined) record.user_id = capText(entry.user_id)
  return record as AuditRecord
}

/** Gives the entry without its input, which may be large, for one that cannot be stored yet. Seals to the same record. */
export function holdEntry(entry: AuditEntry | HeldEntry, options: SealOptions = {}): HeldEntry {
  checkSealOptions(options)
  return 'held' in entry ? entry : { ...entry, input: undefined, held: digestOf(entry, options) }
}

/**
 * Gives what stands in a record before its `hash`: `{"agent":…,"event":"tool_call"`.
 *
 * Text, not an object that becomes text: this and {@link textAfterHash} run for every record.
 */
export function textBeforeHash(entry: AuditEntry, options: SealOptions): string {
  let text = '{'
  if (entry.agent !== undefined) text += `"agent":${quote(entry.agent)},`
  if (entry.app !== undefined) text += `"app":${quote(entry.app)},`
  if (entry.approval_id !== undefined) text += `"approval_id":${quote(entry.approval_id)},`
  text += `"catalog_revision":${number(entry.catalog_revision)}`
  if (entry.chat_id !== undefined) text += `,"chat_id":${quote(entry.chat_id)}`
  if (entry.detail !== undefined) text += `,"detail":${JSON.stringify(freeText(entry.detail, options))}`
  if (isFinite(entry.duration_ms)) text += `,"duration_ms":${entry.duration_ms}`
  if (entry.error !== undefined) text += `,"error":${JSON.stringify(freeText(entry.error, options))}`
  return `${text},"event":${quote(entry.event)}`
}

/** Gives what stands in a record after its `hash`: `,"input_hash":…,"user_id":"vera"}`. */
export function textAfterHash(entry: AuditEntry, seq: number, prev: string, options: SealOptions): string {
  let text = inputText(entry, options)
  if (entry.is_error) text += ',"is_error":true'
  if (entry.limit !== undefined) text += `,"limit":${quote(entry.limit)}`
  const { run } = entry
  const model = entry.model ?? run?.model
  if (model !== undefined) text += `,"model":${quote(model)}`
  if (entry.policy !== undefined) text += `,"policy":${JSON.stringify(entry.policy)}`
  const policyHash = entry.policy_hash ?? entry.in_force?.hash
  if (policyHash !== undefined) text += `,"policy_hash":"${policyHash}"`
  text += `,"policy_revision":${number(entry.policy_revision)},"prev":"${prev}"`
  if (entry.reason !== undefined) text += `,"reason":${quote(entry.reason)}`
  if (isFinite(entry.reset_ms)) text += `,"reset_ms":${entry.reset_ms}`
  const runId = entry.run_id ?? run?.id
  if (runId !== undefined) text += `,"run_id":${quote(runId)}`
  text += `,"seq":${seq}`
  if (entry.session_id !== undefined) text += `,"session_id":${quote(entry.session_id)}`
  if (isFinite(entry.signed_seq)) text += `,"signed_seq":${entry.signed_seq}`
  const step = entry.step ?? run?.step
  if (isFinite(step)) text += `,"step":${step}`
  if (entry.tenant !== undefined) text += `,"tenant":${quote(entry.tenant)}`
  if (entry.tool !== undefined) text += `,"tool":${quote(entry.tool, MAX_TOOL_LENGTH)}`
  if (entry.tool_call_id !== undefined) text += `,"tool_call_id":${quote(entry.tool_call_id)}`
  if (entry.trace_id !== undefined) text += `,"trace_id":${quote(entry.trace_id)}`
  text += `,"ts":"${toTimestamp(entry.wallMs)}"`
  if (entry.user_id !== undefined) text += `,"user_id":${quote(entry.user_id)}`
  return `${text}}`
}

/** What records are asked for by, as the record of an entry has it. */
export interface RecordKeys {
  readonly tool: string | undefined
  readonly user: string | undefined
  readonly session: string | undefined
  readonly call: string | undefined
  /** Of `ts`. */
  readonly atMs: number
}

/** Gives the keys of an entry's record, for a store that keeps them apart. */
export function recordKeys({ tool, user_id, session_id, tool_call_id, wallMs }: AuditEntry): RecordKeys {
  return {
    tool: tool === undefined ? undefined : capText(tool, MAX_TOOL_LENGTH),
    user: user_id === undefined ? undefined : capText(user_id),
    session: session_id === undefined ? undefined : capText(session_id),
    call: tool_call_id === undefined ? undefined : capText(tool_call_id),
    atMs: toWholeMs(wallMs),
  }
}

/** Reason of an `audit_opened` record: nobody else was writing, and what was left open before has been ended. */
export const SOLE_WRITER = 'sole_writer'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function inputText(entry: AuditEntry, options: SealOptions): string {
  if (entry.input === undefined && !('held' in entry)) return ''
  const { input_hash: hash, input_preview: preview } = digestOf(entry, options)
  const text = hash === undefined ? '' : `,"input_hash":"${hash}"`
  return preview === undefined ? text : `${text},"input_preview":${JSON.stringify(preview)}`
}

/** Tells a keyed hash from that of an earlier version. */
const KEYED = 'hmac-sha256:'

const NO_INPUT: HeldEntry['held'] = {}

interface Digested {
  readonly options: SealOptions
  readonly digest: HeldEntry['held']
}

/** A call leaves two records of one input, which is frozen: the second has the digest of the first. */
const digests = new WeakMap<object, Digested>()

function digestOf(entry: AuditEntry | HeldEntry, options: SealOptions): HeldEntry['held'] {
  if ('held' in entry) return entry.held
  const { input } = entry
  if (input === undefined) return NO_INPUT
  if (typeof input !== 'object' || input === null || !Object.isFrozen(input)) return digest(input, options)
  let known = digests.get(input)
  if (known?.options !== options) digests.set(input, (known = { options, digest: digest(input, options) }))
  return known.digest
}

function digest(input: unknown, { redact = redactor, preview = true, inputKey }: SealOptions): HeldEntry['held'] {
  try {
    const text = canonicalize(input)
    const shown = preview ? previewInput(input, text, redact) : undefined
    const hash = inputKey === undefined ? sha256Hex(text) : `${KEYED}${hmacSha256Hex(inputKey, text)}`
    return shown === undefined ? { input_hash: hash } : { input_hash: hash, input_preview: shown }
  } catch {
    return NO_INPUT
  }
}

function isFinite(value: number | undefined): value is number {
  return Number.isFinite(value)
}

function number(value: number): string {
  return Number.isFinite(value) ? String(value) : 'null'
}

/** Redacted before it is capped: a secret that was cut in two is not recognised. */
function freeText(text: string, { redact = redactor }: SealOptions): string {
  try {
    return capText(redact.redactText(text))
  } catch {
    return '[not shown: it could not be redacted]'
  }
}

/** What stands in JSON as it is. */
const PLAIN = /^[ !#-[\]-~]*$/

function quote(text: string, max: number = MAX_TEXT_LENGTH): string {
  return text.length <= max && PLAIN.test(text) ? `"${text}"` : JSON.stringify(capText(text, max))
}

/** Cuts a long text and says how long it was; never cuts a character in two. */
function capText(text: string, max: number = MAX_TEXT_LENGTH): string {
  if (typeof text !== 'string') return capText(messageOf(text), max)
  if (text.length <= max) return text.isWellFormed() ? text : text.toWellFormed()
  const marker = `… (${text.length} characters)`
  const kept = text.slice(0, max - marker.length).replace(/[\uD800-\uDBFF]$/, '')
  return kept.toWellFormed() + marker
}

let latestMs = Number.NaN
let latestTimestamp = ''

/** RFC 3339 with milliseconds; written once for all records of one millisecond. */
function toTimestamp(wallMs: number): string {
  const ms = toWholeMs(wallMs)
  if (ms !== latestMs) {
    latestTimestamp = new Date(ms).toISOString()
    latestMs = ms
  }
  return latestTimestamp
}

/** What ECMAScript has dates for. */
const MAX_DATE_MS = 8.64e15

/** A clock that answers nonsense must not lose the record: it is then of 1970. */
function toWholeMs(wallMs: number): number {
  const ms = Math.trunc(wallMs)
  return Math.abs(ms) <= MAX_DATE_MS ? ms : 0
}
