import type { CallersBody, GroupRow, ServerRow, ToolRow, ToolsBody } from '@toolgate/gateway'
import { createApi, type Whose } from '../client/api.ts'
import { findTarget, type TargetOptions } from '../client/target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../render/table.ts'
import { count, outcomeWord } from '../render/words.ts'
import { findWhose, type WhoseOptions } from './whose.ts'

export interface ToolsOptions extends TargetOptions, WhoseOptions {
  readonly all?: boolean
  readonly json?: boolean
}

/** `toolgate tools`: what one caller sees, or how much each of them does. */
export async function toolsCommand(options: ToolsOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io.env))
  const whose = findWhose(options)
  if (!whose) {
    const body = await api.callers()
    if (options.json) printJson(io.stdout, body)
    else printCallers(body, io)
    return 'ok'
  }
  const body = await api.tools(whose)
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
  printLine(io.stdout, paint('bold', `${who} sees ${visible.length} of ${count(body.tools.length, 'tool')}${where}`))
  const shown = all ? body.tools : visible
  if (shown.length > 0) {
    const rows = shown.map((tool) => toRow(tool, paint))
    printLine(io.stdout, `\n${renderTable(['TOOL', 'ANSWER', 'TAGS', 'WHY'], rows, io.stdout)}`)
  }
  const hidden = body.tools.length - visible.length
  const notes = [...serverNotes(body.servers), ...groupNotes(body.groups)]
  if (hidden > 0 && !all) notes.push(`${count(hidden, 'tool')} hidden; --all shows why.`)
  if (notes.length > 0) printLine(io.stdout, `\n${notes.map((note) => paint('dim', note)).join('\n')}`)
}

function toRow(tool: ToolRow, paint: Paint): string[] {
  const why = tool.reasons[0] ? printable(tool.reasons[0].text) : ''
  return [printable(tool.id), outcomeWord(paint, tool.outcome), tool.tags.map(printable).join(', '), why]
}

/** Says which servers cannot be used, and which of their tools were not taken. */
export function serverNotes(servers: readonly ServerRow[]): string[] {
  return servers.flatMap(({ name, status, reason, rejected, changed }) => [
    ...(status === 'ready' ? [] : [`server ${name} is ${status}${reason ? `: ${printable(reason)}` : ''}`]),
    ...(changed ? [`server ${name} changed at ${new Date(changed.at).toISOString()}: ${printable(changed.text)}`] : []),
    ...rejected.map((tool) => `server ${name}: ${printable(tool.tool)} is not offered: ${printable(tool.reason)}`),
  ])
}

/** Says which groups are unavailable, why, and what to do. */
export function groupNotes(groups: readonly GroupRow[]): string[] {
  return groups
    .filter((group) => !group.available)
    .map(({ name, reason, suggestion }) =>
      [`group ${name} is unavailable${reason ? `: ${printable(reason)}` : ''}.`, printable(suggestion ?? '')]
        .join(' ')
        .trimEnd(),
    )
}
