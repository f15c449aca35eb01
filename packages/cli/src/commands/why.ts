import type { Reason } from '@toolgate/core'
import type { WhyBody } from '@toolgate/gateway'
import { createApi } from '../client/api.ts'
import { findTarget, type TargetOptions } from '../client/target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { outcomeWord } from '../render/words.ts'
import { findWhose, type WhoseOptions } from './whose.ts'

export interface WhyOptions extends TargetOptions, WhoseOptions {
  readonly json?: boolean
}

/** `toolgate why <tool>`: every layer's answer about one tool. Ends with `no` where it is not visible. */
export async function whyCommand(tool: string, options: WhyOptions, io: Io): Promise<ExitName> {
  const whose = findWhose(options)
  if (!whose) throw new CliError('usage', 'Say whose view is meant, with --as <user> or --caller <json>.')
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
  if (body.reasons.length === 0) printLine(io.stdout, '  No layer has anything against it.')
  for (const reason of body.reasons) printLine(io.stdout, reasonLines(reason, paint))
  for (const { pointer, message } of body.schemaWarnings ?? [])
    printLine(io.stdout, `  ${paint('yellow', 'warn')}  inputSchema${printable(pointer)} ${printable(message)}`)
}

function reasonLines({ outcome, layer, code, text, message, suggestion }: Reason, paint: Paint): string {
  const lines = [`  ${outcomeWord(paint, outcome)}  ${layer}: ${printable(text)} ${paint('dim', `(${code})`)}`]
  if (message !== undefined) lines.push(`        the caller is told: ${printable(message)}`)
  if (suggestion !== undefined) lines.push(`        ${printable(suggestion)}`)
  return lines.join('\n')
}
