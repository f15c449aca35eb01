import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { AuditRecord } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import { TOO_LARGE } from '@toolgate/core/internal'
import { readConfig } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { KEY_VARIABLE, openerOf, openSealedAudit, openSealedFile, type SealedAudit } from '../project/sealed-audit.ts'
import { nextCommand } from '../next-command.ts'

export interface AuditOpenOptions {
  /** The id of the call, if it is not the argument. */
  readonly call?: string
  /** The number of the record. */
  readonly record?: number
  readonly config: string
  /** The path of a copy of an audit. */
  readonly file?: string
  readonly json?: boolean
}

/** `toolgate audit open`: prints the input of a call, and records that it was opened. */
export async function auditOpenCommand(
  given: string | undefined,
  options: AuditOpenOptions,
  io: Io,
): Promise<ExitName> {
  const { call, record: seq, config, file } = options
  if ([given, call, seq].filter((one) => one !== undefined).length !== 1)
    throw new CliError('usage', 'Name one call or one record: <call>, --call <id> or --record <seq>.')
  const audit = await openAuditOf(options, io)
  try {
    const record = await findRecord(audit, { given, call, seq }, io)
    const text = await openInput(audit, record, nextCommand('audit verify', file === undefined ? { config } : { file }))
    await leaveTrace(audit, record, io)
    if (options.json) printJson(io.stdout, { record, input: readOwnJson(text, 'exact') })
    else printLine(io.stdout, printable(text))
    return 'ok'
  } finally {
    await audit.close()
  }
}

async function openAuditOf({ config: file, file: copy }: AuditOpenOptions, { env }: Io): Promise<SealedAudit> {
  const isAlone = copy !== undefined && !existsSync(file)
  const config = isAlone ? undefined : await readConfig(file, { env, packagesFrom: [INSTALLED_FROM] })
  const open = openerOf(config?.audit.inputs, env)
  if (!open)
    throw new CliError('usage', 'There is no key to open inputs with.', {
      hint: `Name it in the configuration, as audit.inputs.key, or set ${KEY_VARIABLE}.`,
    })
  const audit = copy === undefined ? config && (await openSealedAudit(config, open)) : await openSealedFile(copy, open)
  if (!audit)
    throw new CliError('usage', 'The audit of this configuration is not on this machine.', {
      hint: 'Give a file with --file.',
    })
  return audit
}

const MOST = 1000

/** The wanted record. `given` is the id of a call, or the number of a record. */
interface WantedRecord {
  readonly given: string | undefined
  readonly call: string | undefined
  readonly seq: number | undefined
}

/**
 * Finds a record by its number, or the newest record with an input by the call's id.
 * @throws {CliError} if both a record and a call match
 */
async function findRecord(
  audit: SealedAudit,
  { given, call = given, seq }: WantedRecord,
  io: Io,
): Promise<AuditRecord> {
  const number = seq ?? (/^\d{1,15}$/.test(given ?? '') ? Number(given) : undefined)
  const at = number === undefined ? undefined : await recordAt(audit, number)
  const records = call === undefined ? [] : await audit.query({ call, limit: MOST })
  const [newest] = records
  if (at && newest)
    throw new CliError('usage', `${printable(call ?? '')} is the number of a record and the id of a call.`, {
      hint: `For the record: --record ${number}. For the call: --call ${printable(call ?? '')}.`,
      code: 'record_ambiguous',
    })
  if (at) return at
  if (newest === undefined) throw unknownRecord(call, number)
  const [found = newest, ...others] = records.filter(({ input_box: box }) => box !== undefined)
  if (others.length > 0)
    printLine(
      io.stderr,
      `This is record ${found.seq}. More records with that id have inputs: ${others.map((one) => one.seq).join(', ')}`,
    )
  return found
}

async function recordAt(audit: SealedAudit, seq: number): Promise<AuditRecord | undefined> {
  const [at] = await audit.query({ beforeSeq: seq + 1, limit: 1 })
  return at?.seq === seq ? at : undefined
}

function unknownRecord(call: string | undefined, seq: number | undefined): CliError {
  const what = [seq !== undefined && `record ${seq}`, call !== undefined && `call with the id ${printable(call)}`]
  return new CliError('no', `The audit has no ${what.filter(Boolean).join(', and no ')}.`, { code: 'record_unknown' })
}

async function openInput(audit: SealedAudit, record: AuditRecord, verify: string): Promise<string> {
  const { seq, input_box: hash } = record
  if (hash === undefined) throw new CliError('no', `Record ${seq} has no sealed input.`, { code: 'input_not_sealed' })
  if (hash === TOO_LARGE)
    throw new CliError('no', `The input of record ${seq} was too long to be kept.`, { code: 'input_too_large' })
  const [box] = await audit.inputBoxes([record])
  if (box === undefined) throw await whyGone(audit, record, verify)
  const opened = audit.open(record, box)
  if (opened.status === 'opened') return opened.text
  if (opened.status === 'wrong_key')
    throw new CliError('key', `None of the keys has sealed the input of record ${seq}.`, {
      hint: 'Add the earlier key to audit.inputs.olderKeys.',
      code: 'input_wrong_key',
    })
  throw new CliError('tampered', `The sealed input of record ${seq} is not the one that was recorded.`, {
    hint: `Run: ${verify}`,
    code: 'input_altered',
  })
}

async function whyGone(audit: SealedAudit, { seq, ts }: AuditRecord, verify: string): Promise<CliError> {
  const [pruned] = await audit.query({ event: 'inputs_pruned', limit: 1 })
  if (pruned?.inputs_before !== undefined && ts < pruned.inputs_before) {
    const what = `The input of record ${seq} is gone: retention removed all before ${pruned.inputs_before}.`
    return new CliError('no', what, { code: 'input_gone' })
  }
  const what = `The input of record ${seq} is missing: no record says that it was removed.`
  return new CliError('gap', what, { hint: `Run: ${verify}`, code: 'input_missing' })
}

/** Records who opened an input. Warns if it cannot be recorded. */
async function leaveTrace(audit: SealedAudit, record: AuditRecord, io: Io): Promise<void> {
  const say = (why: string) => printLine(io.stderr, `The audit does not say that this was opened: ${printable(why)}`)
  if (!audit.leaveTrace) return say('it is a file that is only read.')
  const { seq, tool, tenant, tool_call_id: call = '' } = record
  try {
    await audit.leaveTrace({
      event: 'input_opened',
      wallMs: Date.now(),
      user_id: account(),
      tool,
      tenant,
      // The call is named in the detail, because this record does not belong to the call.
      detail: `record ${seq}, call ${call}`,
      policy_revision: 0,
      catalog_revision: 0,
    })
  } catch (error) {
    say(messageOf(error))
  }
}

/** Returns the user of this machine who runs the command. */
function account(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}
