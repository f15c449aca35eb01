import { nearestOf } from '@toolgate/values'
import type { PinRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'
import { renderTable } from '../table.ts'
import { gatewayOf, nextCommand, quoted } from '../next-command.ts'

export interface PinsCommandOptions extends TargetOptions {
  readonly all?: boolean
  readonly json?: boolean
}

export interface AcceptPinOptions extends TargetOptions {
  readonly hash?: string
  readonly json?: boolean
}

/** The number of printed digits of a hash, which is also the fewest that identify one. */
const SHOWN_DIGITS = 12

/** `toolgate pins`: prints the tools whose definition needs a review. With `--all` it prints all tools. */
export async function pinsCommand(options: PinsCommandOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).pins()
  if (options.json) {
    printJson(io.stdout, body)
    return 'ok'
  }
  const shown = options.all ? body.pins : body.pins.filter(needsReview)
  const unchanged = body.pins.length - shown.length
  if (shown.length > 0) {
    const isOfUsers = shown.some(({ users }) => users)
    const rows = shown.map((pin) => [
      printable(pin.tool),
      stateOf(pin),
      short(pin.hash),
      ...(isOfUsers ? [whoOf(pin)] : []),
      whyOf(pin),
    ])
    const head = ['TOOL', 'STATE', 'HASH', ...(isOfUsers ? ['FOR'] : []), 'WHY']
    printLine(io.stdout, renderTable(head, rows, io.stdout))
    printLine(io.stdout, `\n"${nextCommand('pins accept <tool>', gatewayOf(options))}" shows the changes.`)
  }
  if (unchanged > 0) printLine(io.stdout, `${count(unchanged, 'tool')} unchanged.`)
  else if (body.pins.length === 0) printLine(io.stdout, 'Nothing is pinned.')
  return 'ok'
}

/**
 * `toolgate pins accept <tool>`: shows a definition, and accepts it with `--hash`.
 *
 * There are two steps, so that people accept exactly what they have reviewed.
 */
export async function acceptPinCommand(tool: string, options: AcceptPinOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io))
  const { pins } = await api.pins()
  // If users have their own lists, a tool may have several definitions.
  const definitions = pins.filter((one) => one.tool === tool)
  if (definitions.length === 0) throw new CliError('usage', unknownPin(tool, pins))
  const { hash } = options
  if (hash === undefined) {
    const open = definitions.filter(needsReview)
    for (const pin of open.length > 0 ? open : definitions) printPin(pin, options, io)
    return 'no'
  }
  const pin = hash.length < SHOWN_DIGITS ? undefined : definitions.find((one) => one.hash.startsWith(hash))
  if (!pin) {
    throw new CliError('usage', `The definition of "${printable(tool)}" is not ${printable(hash)} now.`, {
      hint: `"${nextCommand(`pins accept ${quoted(tool)}`, gatewayOf(options))}" shows it.`,
    })
  }
  const accepted = await api.acceptPin({ tool, hash: pin.hash })
  if (options.json) printJson(io.stdout, accepted)
  else printLine(io.stdout, `${printable(tool)} is accepted (${short(accepted.hash)}).`)
  return 'ok'
}

function unknownPin(tool: string, pins: readonly PinRow[]): string {
  const near = nearestOf(
    tool,
    pins.map((pin) => pin.tool),
  )
  const hint = near === undefined ? '' : ` Did you mean "${printable(near)}"?`
  return `There is no tool "${printable(tool)}" among the pins.${hint}`
}

function printPin(pin: PinRow, options: TargetOptions, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const who = pin.users ? `  for ${whoOf(pin)}` : ''
  printLine(io.stdout, `${paint('bold', printable(pin.tool))}  ${stateOf(pin)}${who}`)
  for (const line of [...diffLines(pin, paint), ...pin.findings.map(({ text }) => `! ${printable(text)}`)]) {
    printLine(io.stdout, `  ${line}`)
  }
  const command = nextCommand(`pins accept ${quoted(pin.tool)} --hash ${short(pin.hash)}`, gatewayOf(options))
  printLine(io.stdout, `\nNothing is accepted yet. To accept this definition: ${command}`)
}

const SIGNS = { added: ['+', 'green'], removed: ['-', 'red'], changed: ['~', 'yellow'] } as const

function diffLines({ diff }: PinRow, paint: Paint): string[] {
  if (!diff) return []
  const lines = diff.changes.map(({ kind, pointer, text }) => {
    const [sign, style] = SIGNS[kind]
    return paint(style, `${sign} ${printable(pointer) || '(all of it)'}: ${printable(text)}`)
  })
  return diff.more > 0 ? [...lines, `… and ${diff.more} more`] : lines
}

function needsReview({ status, findings, by }: PinRow): boolean {
  return status !== 'pinned' || (findings.length > 0 && by === undefined)
}

function stateOf({ status, quarantined }: PinRow): string {
  return quarantined ? `${status}, quarantined` : status
}

const MAX_WHO = 3

/** Returns the names of the users whose tool lists have this definition. */
function whoOf({ users }: PinRow): string {
  if (!users) return 'all'
  const names = users
    .slice(0, MAX_WHO)
    .map(({ user, tenant }) => printable(tenant === undefined ? user : `${tenant}/${user}`))
  return users.length > MAX_WHO ? `${names.join(', ')} and ${users.length - MAX_WHO} more` : names.join(', ')
}

function whyOf({ isNew, diff, findings }: PinRow): string {
  const places = diff ? [count(diff.changes.length + diff.more, 'change')] : []
  const codes = [...new Set(findings.map(({ code }) => code))]
  return [...(isNew ? ['new tool'] : []), ...places, ...codes].join(', ')
}

function short(hash: string): string {
  return hash.slice(0, SHOWN_DIGITS)
}
