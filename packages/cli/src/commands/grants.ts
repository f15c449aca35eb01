import type { GrantFilter, GrantRequest, NamedField } from '@toolgate/core/stores'
import type { GrantRow } from '@toolgate/gateway'
import { grantText } from '@toolgate/core/call'
import { JsonFault, readJson } from '@toolgate/values/json'
import { createApi } from '../client.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'
import { findTarget, type TargetOptions } from '../target.ts'

/** The options of `toolgate approvals approve` that make a grant. */
export interface GrantOptions {
  readonly for?: number
  readonly uses?: number
  readonly covers?: GrantRequest['covers']
  readonly field?: readonly string[]
  readonly upTo?: readonly string[]
  readonly any?: readonly string[]
  readonly anyRun?: boolean
}

export interface GrantsOptions extends TargetOptions {
  readonly status: NonNullable<GrantFilter['status']>
  readonly all?: boolean
  readonly user?: string
  readonly tool?: string
  readonly tenant?: string
  readonly limit?: number
  readonly json?: boolean
}

/** Returns the grant that the options ask for; `undefined` without `--for`. */
export function toGrantRequest(options: GrantOptions): GrantRequest | undefined {
  const { for: forMs, uses, covers, field = [], upTo = [], any = [], anyRun } = options
  if (forMs === undefined) return undefined
  const named = [
    ...field.map((text) => [text, (value: string): NamedField => ({ is: valueOf(value) })] as const),
    ...upTo.map((text) => [text, (value: string): NamedField => ({ upTo: numberOf(text, value) })] as const),
  ].map(([text, toRule]) => {
    const [name, value] = parts(text)
    return [name, toRule(value)] as const
  })
  const rules = [...named, ...any.map((name) => [name, { any: true }] as const)]
  if (new Set(rules.map(([name]) => name)).size < rules.length)
    throw new CliError('usage', 'A field is named twice: give each field one of --field, --up-to and --any.')
  const fields = rules.length === 0 ? undefined : Object.fromEntries(rules)
  return {
    covers: covers ?? (fields ? 'fields' : 'input'),
    forMs,
    ...(uses !== undefined && { uses }),
    ...(fields && { fields }),
    ...(anyRun && { anyRun: true as const }),
  }
}

/** Splits `to=bob@corp`. */
function parts(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 0) throw new CliError('usage', `${JSON.stringify(text)} is not <field>=<value>.`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Returns a value that is written as JSON, or the text itself. */
function valueOf(text: string): unknown {
  try {
    return readJson(text, { integers: 'exact' })
  } catch (error) {
    if (error instanceof JsonFault) return text
    throw error
  }
}

function numberOf(text: string, value: string): number | bigint {
  const number = valueOf(value)
  if (typeof number === 'number' || typeof number === 'bigint') return number
  throw new CliError('usage', `The bound in ${JSON.stringify(text)} is not a number.`)
}

/** `toolgate grants`: prints the grants, newest first. */
export async function grantsCommand(options: GrantsOptions, io: Io): Promise<ExitName> {
  const { status, all, user, tool, tenant, limit } = options
  const filter = { status: all ? undefined : status, user, tool, tenant, limit }
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
  const body = await createApi(findTarget(options, io)).grants(given)
  if (options.json) printJson(io.stdout, body)
  else {
    if (!body.bounds) printLine(io.stdout, 'Grants are switched off: the file has no "grants". No grant covers a call.')
    if (body.grants.length === 0) printLine(io.stdout, all ? 'No grants.' : `No grant is ${status}.`)
    else printLine(io.stdout, renderTable(HEAD, body.grants.map(cellsOf), io.stdout))
  }
  return 'ok'
}

const HEAD = ['ID', 'STATUS', 'TOOL', 'TENANT', 'USED', 'COVERS', 'BY']

function cellsOf(grant: GrantRow): readonly string[] {
  const { id, status, tool, tenant = '', used, uses, grantedBy } = grant
  return [id, status, tool, tenant, `${used}/${uses}`, grantText(grant), grantedBy].map(printable)
}

/** `toolgate grants revoke`: ends a grant, when the command ends. */
export async function revokeGrantCommand(
  id: string,
  options: TargetOptions & { readonly reason?: string; readonly json?: boolean },
  io: Io,
): Promise<ExitName> {
  const { reason, json } = options
  const row = await createApi(findTarget(options, io)).revokeGrant(id, reason)
  if (json) printJson(io.stdout, row)
  else {
    const word = painter(io.stdout, io.env)('red', 'revoked')
    printLine(io.stdout, `${word}  ${printable(row.tool)} ${printable(grantText(row))}; used ${row.used} times`)
  }
  return 'ok'
}
