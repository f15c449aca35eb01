import { defineCaller, ToolgateError } from '@toolgate/core'
import { clauseText } from '@toolgate/core/internal'
import type { ItemKind } from '@toolgate/core/toolset'
import type {
  CallersBody,
  NeedRow,
  NeedsBody,
  PlacedChange,
  PlacedReason,
  ToolRow,
  ToolsBody,
  WhyBody,
} from '@toolgate/gateway'
import { createApi, findTarget, type TargetOptions, type Whose } from '../client.ts'
import { CliError, type ExitName } from '../exit.ts'
import { parseJson } from '../json.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { groupNotes, listNotes, serverNotes } from '../notes.ts'
import { count, outcomeWord } from '../render.ts'
import { renderTable } from '../table.ts'

export interface ToolsOptions extends TargetOptions, WhoseOptions {
  readonly all?: boolean
  readonly kind?: ItemKind
  readonly json?: boolean
}

/** `toolgate tools`: prints the tools, or the items of another kind, that one caller sees, or how many tools each caller sees. */
export async function toolsCommand(options: ToolsOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io.env))
  const whose = findWhose(options)
  if (!whose) {
    if (options.kind !== undefined && options.kind !== 'tool')
      throw new CliError('usage', 'Name the caller whose list to print, with --as <user> or --caller <json>.')
    const body = await api.callers()
    if (options.json) printJson(io.stdout, body)
    else printCallers(body, io)
    return 'ok'
  }
  const body = await api.tools(whose, options.kind)
  if (options.json) printJson(io.stdout, body)
  else printTools(body, whose, options.all === true, io)
  return 'ok'
}

function printCallers({ callers }: CallersBody, io: Io): void {
  const rows = callers.map((row) => [
    printable(row.user),
    row.for,
    row.roles.map(printable).join(', '),
    String(row.visible),
  ])
  printLine(io.stdout, renderTable(['CALLER', 'KEY FOR', 'ROLES', 'TOOLS'], rows, io.stdout))
  printLine(io.stdout, '\n"toolgate tools --as <caller>" lists them.')
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
  const notes = [...listNotes(body.lists), ...serverNotes(body.servers), ...groupNotes(body.groups)]
  if (hidden > 0 && !all) notes.push(`${count(hidden, body.kind)} hidden; --all shows why.`)
  if (notes.length > 0) printLine(io.stdout, `\n${notes.map((note) => paint('dim', note)).join('\n')}`)
}

function toRow(tool: ToolRow, paint: Paint): string[] {
  const why = tool.reasons[0] ? printable(tool.reasons[0].text) : ''
  return [printable(tool.id), outcomeWord(paint, tool.outcome), tool.tags.map(printable).join(', '), why]
}

export interface WhyOptions extends TargetOptions, WhoseOptions {
  readonly json?: boolean
}

/** `toolgate why <id>`: prints every layer's answer about an item of any kind. Ends with `no` if it is not visible. */
export async function whyCommand(tool: string, options: WhyOptions, io: Io): Promise<ExitName> {
  const whose = findWhose(options)
  if (!whose) throw new CliError('usage', 'Name the caller, with --as <user> or --caller <json>.')
  const body = await createApi(findTarget(options, io.env)).why(tool, whose)
  if (options.json) printJson(io.stdout, body)
  else printWhy(body, 'as' in whose ? body.as : 'this caller', io)
  return body.visible ? 'ok' : 'no'
}

function printWhy(body: WhyBody, who: string, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const where = body.app === undefined ? '' : ` in the app ${printable(body.app)}`
  const sees = body.visible ? 'sees' : 'does not see'
  printLine(
    io.stdout,
    `${outcomeWord(paint, body.outcome)}  ${printable(who)} ${sees} ${paint('bold', printable(body.tool))}${where}`,
  )
  for (const note of listNotes(body.list ? [body.list] : [])) printLine(io.stdout, `  ${paint('dim', note)}`)
  if (body.reasons.length === 0) printLine(io.stdout, '  No layer objects.')
  for (const reason of body.reasons) printLine(io.stdout, reasonLines(reason, paint))
  const yes = body.answers.filter(({ outcome }) => outcome === 'allow').map(({ layer }) => layer)
  if (body.reasons.length > 0 && yes.length > 0)
    printLine(io.stdout, `  ${paint('dim', `said yes: ${yes.join(', ')}`)}`)
  for (const way of body.wouldAllow ?? [])
    printLine(io.stdout, `  ${paint('green', 'would allow it')}  ${wayText(way)}`)
  for (const reason of body.shadow?.reasons ?? [])
    printLine(io.stdout, `  ${paint('dim', 'a shadow would say:')}\n${reasonLines(reason, paint)}`)
  for (const { pointer, message } of body.schemaWarnings ?? [])
    printLine(io.stdout, `  ${paint('yellow', 'warn')}  inputSchema${printable(pointer)} ${printable(message)}`)
}

function reasonLines(reason: PlacedReason, paint: Paint): string {
  const { outcome, layer, code, text, clause, place, message, suggestion } = reason
  const lines = [`  ${outcomeWord(paint, outcome)}  ${layer}: ${printable(text)} ${paint('dim', `(${code})`)}`]
  const written = [
    place && `${place.file}:${place.line}:${place.column}`,
    clause && clauseText(clause),
    hitsText(reason),
  ].flatMap((part) => (part === undefined ? [] : [printable(part)]))
  if (written.length > 0) lines.push(`        ${paint('dim', written.join('  '))}`)
  if (message !== undefined) lines.push(`        the caller is told: ${printable(message)}`)
  if (suggestion !== undefined) lines.push(`        ${printable(suggestion)}`)
  return lines.join('\n')
}

/** Returns the changes of one way, all of which it takes. */
function wayText(way: readonly PlacedChange[]): string {
  const texts = way.map(({ text, place }) => (place ? `${text} (${place.file}:${place.line}:${place.column})` : text))
  return printable(texts.join(', and '))
}

function hitsText({ hits, lastHitAt, countedSince }: PlacedReason): string | undefined {
  if (hits === undefined || countedSince === undefined) return undefined
  if (lastHitAt === undefined) return `no call has reached it since ${new Date(countedSince).toISOString()}`
  return `${count(hits, 'call')}, the last at ${new Date(lastHitAt).toISOString()}`
}

export interface NeedsOptions extends TargetOptions {
  readonly json?: boolean
}

/** `toolgate needs [app]`: prints the dependencies of an app's tools. Ends with `no` if one is not available. */
export async function needsCommand(app: string | undefined, options: NeedsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io.env)).needs(app)
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

interface WhoseOptions {
  readonly as?: string
  readonly caller?: string
  readonly app?: string
}

/**
 * Returns the caller of `--as <user>` or `--caller <json>`, with `--app <app>`; `undefined` without them.
 *
 * @throws {CliError} `usage` for both, for an app alone, and for an invalid caller
 */
function findWhose({ as, caller, app }: WhoseOptions): Whose | undefined {
  if (as !== undefined && caller !== undefined) throw new CliError('usage', 'Give --as or --caller, not both.')
  const within = app === undefined ? {} : { app }
  if (caller !== undefined) return { caller: JSON.stringify(parseCaller(caller)), ...within }
  if (as !== undefined) return { as, ...within }
  if (app !== undefined)
    throw new CliError('usage', 'Name the caller whose view of the app to use, with --as <user> or --caller <json>.')
  return undefined
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
