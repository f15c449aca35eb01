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

/** What the sink adds to an entry. */
interface Given {
  readonly options: SealOptions
  readonly seq: number
  /** Absent in an audit that is not chained. */
  readonly prev?: string
  /** Of the input, once it was asked for. */
  digest?: HeldEntry['held']
}

/** A field of a record: its value, and the JSON of that; `undefined` where the record does not have it. */
interface Field {
  value(entry: AuditEntry, given: Given): string | number | true | undefined
  json(entry: AuditEntry, given: Given): string | undefined
  /** Matches its JSON, in canonical form. */
  readonly pattern: string
}

/** How a value of one kind is shown in a record. */
interface Kind<T> {
  show(value: T, options: SealOptions): string | number | true
  /** The JSON of what `show` returns. */
  toJson(value: T, options: SealOptions): string
  readonly pattern: string
}

const TEXT_PATTERN = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[\da-f]))[^"\\\x00-\x1f]*)*"`
/** Numbers that ECMAScript is sure to write like this; for others the text is parsed. */
const NUMBER_PATTERN = String.raw`(?:0|[1-9]\d{0,14}|(?:0|[1-9]\d{0,8})\.\d{0,4}[1-9])`

const textUpTo = (max: number): Kind<string> => ({
  show: (value) => capText(value, max),
  toJson: (value) => quote(value, max),
  pattern: TEXT_PATTERN,
})
const NAME = textUpTo(MAX_TEXT_LENGTH)
const TOOL = textUpTo(MAX_TOOL_LENGTH)
/** A text that may hold a secret. */
const FREE: Kind<string> = {
  show: freeText,
  toJson: (value, options) => JSON.stringify(freeText(value, options)),
  pattern: TEXT_PATTERN,
}
/** A text of our own, of any length. */
const OWN: Kind<string> = { show: (value) => value, toJson: (value) => JSON.stringify(value), pattern: TEXT_PATTERN }
/** A hash or a time, which JSON writes as it is. */
const PLAIN_TEXT: Kind<string> = { show: (value) => value, toJson: (value) => `"${value}"`, pattern: TEXT_PATTERN }
const NUMBER: Kind<number> = {
  show: (value) => value,
  toJson: (value) => (Number.isFinite(value) ? String(value) : 'null'),
  pattern: NUMBER_PATTERN,
}
const FLAG: Kind<true> = { show: (value) => value, toJson: () => 'true', pattern: 'true' }

function field<T>(kind: Kind<T>, of: (entry: AuditEntry, given: Given) => T | undefined): Field {
  const { show, toJson, pattern } = kind
  return {
    value(entry, given) {
      const value = of(entry, given)
      return value === undefined ? undefined : show(value, given.options)
    },
    json(entry, given) {
      const value = of(entry, given)
      return value === undefined ? undefined : toJson(value, given.options)
    },
    pattern,
  }
}

/** The one table of a record's fields, in alphabetical order, as RFC 8785 has them. */
const FIELDS: Readonly<Record<keyof AuditRecord, Field>> = {
  agent: field(NAME, ({ agent }) => agent),
  app: field(NAME, ({ app }) => app),
  approval_id: field(NAME, (entry) => entry.approval_id),
  catalog_revision: field(NUMBER, (entry) => entry.catalog_revision),
  chat_id: field(NAME, (entry) => entry.chat_id),
  detail: field(FREE, ({ detail }) => detail),
  duration_ms: field(NUMBER, (entry) => finite(entry.duration_ms)),
  error: field(FREE, ({ error }) => error),
  event: field(NAME, ({ event }) => event),
  // Over all the others: the sealer puts it here.
  hash: field(PLAIN_TEXT, () => undefined),
  input_hash: field(PLAIN_TEXT, (entry, given) => digestIn(entry, given).input_hash),
  input_preview: field(OWN, (entry, given) => digestIn(entry, given).input_preview),
  is_error: field(FLAG, (entry) => entry.is_error || undefined),
  limit: field(NAME, ({ limit }) => limit),
  model: field(NAME, ({ model, run }) => model ?? run?.model),
  policy: field(OWN, ({ policy }) => policy),
  policy_hash: field(PLAIN_TEXT, (entry) => entry.policy_hash ?? entry.in_force?.hash),
  policy_revision: field(NUMBER, (entry) => entry.policy_revision),
  prev: field(PLAIN_TEXT, (_entry, { prev }) => prev),
  reason: field(NAME, ({ reason }) => reason),
  reset_ms: field(NUMBER, (entry) => finite(entry.reset_ms)),
  run_id: field(NAME, (entry) => entry.run_id ?? entry.run?.id),
  seq: field(NUMBER, (_entry, { seq }) => seq),
  session_id: field(NAME, (entry) => entry.session_id),
  signed_seq: field(NUMBER, (entry) => finite(entry.signed_seq)),
  step: field(NUMBER, ({ step, run }) => finite(step ?? run?.step)),
  tenant: field(NAME, ({ tenant }) => tenant),
  tool: field(TOOL, ({ tool }) => tool),
  tool_call_id: field(NAME, (entry) => entry.tool_call_id),
  trace_id: field(NAME, (entry) => entry.trace_id),
  ts: field(PLAIN_TEXT, ({ wallMs }) => toTimestamp(wallMs)),
  user_id: field(NAME, (entry) => entry.user_id),
}

const ROWS = Object.entries(FIELDS).map(([name, { json, value, pattern }]) => ({
  name,
  head: `,"${name}":`,
  json,
  value,
  pattern,
}))
const HASH_AT = ROWS.findIndex(({ name }) => name === 'hash')
const BEFORE_HASH = ROWS.slice(0, HASH_AT)
const AFTER_HASH = ROWS.slice(HASH_AT + 1)

/**
 * Returns the record that is shown for an entry, not chained to others.
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
  const given: Given = { options, seq }
  const record: Record<string, unknown> = {}
  for (const { name, value } of ROWS) {
    const shown = value(entry, given)
    if (shown !== undefined) record[name] = shown
  }
  return record as unknown as AuditRecord
}

/** Returns the entry without its input, which may be large, for one that cannot be stored yet. Seals to the same record. */
export function holdEntry(entry: AuditEntry | HeldEntry, options: SealOptions = {}): HeldEntry {
  checkSealOptions(options)
  return 'held' in entry ? entry : { ...entry, input: undefined, held: digestOf(entry, options) }
}

/** Returns the text of a record before its `hash`: `{"agent":…,"event":"tool_call"`. */
export function textBeforeHash(entry: AuditEntry, options: SealOptions): string {
  return `{${write(BEFORE_HASH, entry, { options, seq: 0 }).slice(1)}`
}

/** Returns the text of a record after its `hash`: `,"input_hash":…,"user_id":"vera"}`. */
export function textAfterHash(entry: AuditEntry, seq: number, prev: string, options: SealOptions): string {
  return `${write(AFTER_HASH, entry, { options, seq, prev })}}`
}

/** Text, not an object that becomes text: this runs for every record. */
function write(rows: typeof ROWS, entry: AuditEntry, given: Given): string {
  let written = ''
  for (const { head, json } of rows) {
    const value = json(entry, given)
    if (value !== undefined) written += head + value
  }
  return written
}

/** Every field in its place, once: in one pass over the text, several times faster than parsing and writing it again. */
const RECORD = new RegExp(String.raw`^\{${ROWS.map(({ head, pattern }) => `(?:${head}${pattern})?`).join('')}\}$`)

/** Tells whether the text of a record is its RFC 8785 form, also of one with fields that are not known here. */
export function isCanonicalRecord(record: string): boolean {
  if (record.startsWith('{') && RECORD.test(`{,${record.slice(1)}`)) return record.isWellFormed()
  try {
    return canonicalize(JSON.parse(record)) === record
  } catch {
    return false
  }
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

/** Tells a keyed hash from that of an earlier version. */
const KEYED = 'hmac-sha256:'

function digestIn(entry: AuditEntry, given: Given): HeldEntry['held'] {
  return (given.digest ??= digestOf(entry, given.options))
}

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

function finite(value: number | undefined): number | undefined {
  return Number.isFinite(value) ? value : undefined
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
