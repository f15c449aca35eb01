import type { NeedRow, NeedsBody } from '@toolgate/gateway'
import { createApi } from '../client/api.ts'
import { findTarget, type TargetOptions } from '../client/target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../render/table.ts'
import { count } from '../render/words.ts'

export interface NeedsOptions extends TargetOptions {
  readonly json?: boolean
}

/** `toolgate needs [app]`: what must work for the tools of an app. Ends with `no` where something is not available. */
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
  const rows = needs.map((need) => toRow(need, paint))
  printLine(io.stdout, `\n${renderTable(['NEEDS', 'STATE', 'SINCE', 'GROUPS', 'WHY'], rows, io.stdout)}`)
}

const STYLES = { available: 'green', unavailable: 'red', unknown: 'yellow' } as const satisfies Record<
  NeedRow['state'],
  string
>

function toRow({ what, state, since, groups, reason, suggestion }: NeedRow, paint: Paint): string[] {
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
