import { defineCaller, ToolgateError } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import type { ItemKind } from '@toolgate/core/toolset'
import type { CallersBody, NeedRow, NeedsBody, ToolRow, ToolsBody } from '@toolgate/gateway'
import { createApi, type Whose } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { parseJson } from '../json.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { groupNotes, listNotes, rolesNotes, serverNotes } from '../notes.ts'
import { count, dependsOn, outcomeWord } from '../render.ts'
import { renderTable } from '../table.ts'
import { gatewayOf, nextCommand } from '../next-command.ts'

export interface ToolsOptions extends TargetOptions, WhoseOptions {
  readonly all?: boolean
  readonly kind?: ItemKind
  readonly json?: boolean
}

/**
 * `toolgate tools`: prints the tools, or the items of another kind, that one caller sees, or the number of tools that
 * each caller sees.
 */
export async function toolsCommand(options: ToolsOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io))
  if (options.as === undefined && options.caller === undefined) {
    const body = await api.callers()
    if (options.json) printJson(io.stdout, body)
    else printCallers(body, options, io)
    return 'ok'
  }
  const whose = whoseOf(options)
  const body = await api.tools(whose, options.kind)
  if (options.json) printJson(io.stdout, body)
  else printTools(body, whose, options.all === true, io)
  return 'ok'
}

function printCallers({ callers }: CallersBody, options: TargetOptions, io: Io): void {
  const rows = callers.map((row) => [
    printable(row.user),
    row.for,
    row.roles.map(printable).join(', '),
    String(row.visible),
  ])
  printLine(io.stdout, renderTable(['CALLER', 'KEY FOR', 'ROLES', 'TOOLS'], rows, io.stdout))
  printLine(io.stdout, `\n"${nextCommand('tools --as <caller>', gatewayOf(options))}" lists them.`)
}

function printTools(body: ToolsBody, whose: Whose, all: boolean, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const visible = body.tools.filter((tool) => tool.visible)
  const who = 'as' in whose ? printable(body.as) : 'this caller'
  const where = body.app === undefined ? '' : ` in the app ${printable(body.app)}`
  printLine(io.stdout, paint('bold', `${who} sees ${visible.length} of ${count(body.tools.length, body.kind)}${where}`))
  const shown = all ? body.tools : visible
  if (shown.length > 0) {
    const rows = shown.map((tool) => toRow(tool, paint))
    printLine(io.stdout, `\n${renderTable([body.kind.toUpperCase(), 'ANSWER', 'TAGS', 'WHY'], rows, io.stdout)}`)
  }
  const hidden = body.tools.length - visible.length
  const notes = [
    ...rolesNotes(body.rolesFrom),
    ...listNotes(body.lists),
    ...serverNotes(body.servers),
    ...groupNotes(body.groups),
  ]
  if (hidden > 0 && !all) notes.push(`${count(hidden, body.kind)} hidden; --all shows why.`)
  if (notes.length > 0) printLine(io.stdout, `\n${notes.map((note) => paint('dim', note)).join('\n')}`)
}

function toRow(tool: ToolRow, paint: Paint): string[] {
  const why = [printable(tool.reasons[0]?.text ?? ''), dependsOn(tool.mayStill)].filter(Boolean).join('; ')
  return [printable(tool.id), outcomeWord(paint, tool.outcome), tool.tags.map(printable).join(', '), why]
}

export interface NeedsOptions extends TargetOptions {
  readonly json?: boolean
}

/** `toolgate needs [app]`: prints the dependencies of an app's tools. Ends with `no` if one is not available. */
export async function needsCommand(app: string | undefined, options: NeedsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).needs(app)
  if (options.json) printJson(io.stdout, body)
  else printNeeds(body, io)
  return body.needs.every(isAvailable) ? 'ok' : 'no'
}

function printNeeds({ app, needs }: NeedsBody, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const who = app === undefined ? 'The groups' : `The app ${printable(app)}`
  const verb = app === undefined ? 'need' : 'needs'
  if (needs.length === 0) return printLine(io.stdout, `${who} ${verb} nothing that is checked.`)
  const missing = needs.filter((need) => !isAvailable(need)).length
  const summary = missing === 0 ? 'all available' : `${missing} not available`
  printLine(io.stdout, paint('bold', `${who} ${verb} ${count(needs.length, 'thing')}, ${summary}`))
  const rows = needs.map((need) => toNeedRow(need, paint))
  printLine(io.stdout, `\n${renderTable(['NEEDS', 'STATE', 'SINCE', 'GROUPS', 'WHY'], rows, io.stdout)}`)
}

const STYLES = { available: 'green', unavailable: 'red', unknown: 'yellow' } as const satisfies Record<
  NeedRow['state'],
  string
>

function toNeedRow({ what, state, since, groups, reason, suggestion }: NeedRow, paint: Paint): string[] {
  return [
    printable(what),
    paint(STYLES[state], state),
    since === undefined ? '' : new Date(since).toISOString(),
    groups.map(printable).join(', '),
    [reason === undefined ? '' : `${printable(reason)}.`, printable(suggestion ?? '')].join(' ').trim(),
  ]
}

function isAvailable({ state }: NeedRow): boolean {
  return state === 'available'
}

export interface WhoseOptions {
  readonly as?: string
  readonly caller?: string
  readonly app?: string
}

/** Returns the caller of `--as <user>` or `--caller <json>`, with `--app <app>`. @throws {CliError} `usage` for an invalid caller */
export function whoseOf({ as = '', caller, app }: WhoseOptions): Whose {
  const within = app === undefined ? {} : { app }
  return caller === undefined ? { as, ...within } : { caller: toJsonText(parseCaller(caller)), ...within }
}

function parseCaller(text: string): unknown {
  try {
    const value = parseJson(text)
    if (typeof value === 'object' && value !== null) return defineCaller(value)
    throw new ToolgateError('caller_invalid', 'caller must be an object')
  } catch (cause) {
    const problem = cause instanceof ToolgateError ? cause.message : 'it is not JSON'
    throw new CliError('usage', `--caller cannot be used: ${problem}.`, {
      hint: `Such as: --caller '{"user":"vera","roles":["viewer"]}'`,
      cause,
    })
  }
}
