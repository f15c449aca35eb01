import { clauseText } from '@toolgate/core/policy'
import type { PlacedChange, PlacedMayStill, PlacedReason, WhyBody, WhyInputBody } from '@toolgate/gateway'
import { createApi, type Whose } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { readGiven, readInput } from '../given.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { listNotes, mayText, rolesNotes } from '../notes.ts'
import { count, decisionWords, outcomeWord } from '../render.ts'
import { whoseOf, type WhoseOptions } from './tools.ts'

export interface WhyOptions extends TargetOptions, WhoseOptions {
  /** The input: JSON, `@file`, or `-`. */
  readonly input?: string
  /** The history: YAML or JSON, `@file`, a path, or `-`. */
  readonly history?: string
  readonly json?: boolean
}

/**
 * `toolgate why <id>`: prints every layer's answer about an item of any kind, or with `--input` or `--history` about a
 * call. Ends with `no` if the item is not visible, or the call would be refused.
 */
export async function whyCommand(tool: string, options: WhyOptions, io: Io): Promise<ExitName> {
  const whose = whoseOf(options)
  if (options.input === undefined && options.history === undefined) {
    const body = await createApi(findTarget(options, io)).why(tool, whose)
    if (options.json) printJson(io.stdout, body)
    else printWhy(body, whoOf(whose, body), io)
    return body.visible ? 'ok' : 'no'
  }
  const body = await dryRun(tool, whose, options, io)
  if (options.json) printJson(io.stdout, body)
  else printDryRun(body, whoOf(whose, body), io)
  return body.outcome === 'allow' || body.outcome === 'ask' ? 'ok' : 'no'
}

async function dryRun(tool: string, whose: Whose, options: WhyOptions, io: Io): Promise<WhyInputBody> {
  if (options.input === '-' && options.history === '-')
    throw new CliError('usage', 'Only one of --input and --history can come from stdin.')
  // Without an input, a resource is read by its URI.
  const input = options.input === undefined ? {} : await readInput(options.input)
  const history = options.history === undefined ? undefined : await readHistory(options.history)
  const asked = { tool, ...whose, input, ...(history && { history: history.text }) }
  try {
    return await createApi(findTarget(options, io)).dryRun(asked)
  } catch (error) {
    if (!history || !(error instanceof CliError)) throw error
    // The gateway does not know the file's name.
    const message = error.message.replaceAll(/^history(?=:\d+:\d+: )/gm, history.name)
    const { code, hint } = error
    throw new CliError(error.exit, message, { ...(code && { code }), ...(hint && { hint }), cause: error })
  }
}

/** Reads a history. A text that begins like YAML or JSON of a history is the history; any other text is a path. */
async function readHistory(given: string): Promise<{ readonly name: string; readonly text: string }> {
  if (given === '-') return { name: 'stdin', text: await readGiven(given) }
  if (/^\s*(\{|\w+:\s)/.test(given) || given.trim() === '') return { name: 'history', text: given }
  const file = given.startsWith('@') ? given.slice(1) : given
  return { name: printable(file), text: await readGiven(`@${file}`) }
}

function whoOf(whose: Whose, { as }: Pick<WhyBody, 'as'>): string {
  return printable('as' in whose ? as : 'this caller')
}

function whereOf({ app }: Pick<WhyBody, 'app'>): string {
  return app === undefined ? '' : ` in the app ${printable(app)}`
}

const WOULD: Readonly<Record<WhyInputBody['outcome'], string>> = {
  allow: 'would run',
  ask: 'would wait for a person',
  wait: 'would be refused for now',
  deny: 'would be refused',
}

function printDryRun(body: WhyInputBody, who: string, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const call = `a call of ${paint('bold', printable(body.tool))} by ${who}`
  printLine(
    io.stdout,
    `${decisionWords(paint, body.outcome, body.mayStill)}  ${call}${whereOf(body)} ${WOULD[body.outcome]}`,
  )
  for (const note of rolesNotes(body.rolesFrom)) printLine(io.stdout, `  ${paint('dim', note)}`)
  if (body.grant) {
    const { id, grantedBy, expiresAt, uses, used } = body.grant
    const left = `${uses - used} of ${uses} uses left until ${new Date(expiresAt).toISOString()}`
    printLine(io.stdout, `  a rule asks, and the grant ${printable(id)} of ${printable(grantedBy)} covers it: ${left}`)
  }
  printReasons(body, paint, io)
  if (body.text !== undefined) printLine(io.stdout, `  the agent would read: ${printable(body.text)}`)
}

function printWhy(body: WhyBody, who: string, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const sees = body.visible ? 'sees' : 'does not see'
  printLine(
    io.stdout,
    `${decisionWords(paint, body.outcome, body.mayStill)}  ${who} ${sees} ${paint('bold', printable(body.tool))}${whereOf(body)}`,
  )
  for (const note of [...rolesNotes(body.rolesFrom), ...listNotes(body.list ? [body.list] : [])])
    printLine(io.stdout, `  ${paint('dim', note)}`)
  printReasons(body, paint, io)
  if (body.may) printLine(io.stdout, `  ${paint('dim', `its server ${mayText(body.may)}`)}`)
  for (const { pointer, message } of body.schemaWarnings ?? [])
    printLine(io.stdout, `  ${paint('yellow', 'warn')}  inputSchema${printable(pointer)} ${printable(message)}`)
  if (body.leftOut !== undefined) printLine(io.stdout, `  ${paint('yellow', 'warn')}  ${printable(body.leftOut)}`)
}

type Reasoned = Pick<WhyBody, 'reasons' | 'answers' | 'wouldAllow' | 'shadow' | 'mayStill'>

function printReasons(body: Reasoned, paint: Paint, io: Io): void {
  if (body.reasons.length === 0 && !body.mayStill) printLine(io.stdout, '  No layer objects.')
  for (const reason of body.reasons) printLine(io.stdout, reasonLines(reason, paint))
  for (const may of body.mayStill ?? []) printLine(io.stdout, mayStillLines(may, paint))
  const yes = body.answers.filter(({ outcome }) => outcome === 'allow').map(({ layer }) => layer)
  if (body.reasons.length > 0 && yes.length > 0)
    printLine(io.stdout, `  ${paint('dim', `said yes: ${yes.join(', ')}`)}`)
  for (const way of body.wouldAllow ?? [])
    printLine(io.stdout, `  ${paint('green', 'would allow it')}  ${wayText(way)}`)
  for (const reason of body.shadow?.reasons ?? [])
    printLine(io.stdout, `  ${paint('dim', 'a shadow would say:')}\n${reasonLines(reason, paint)}`)
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

function mayStillLines({ example, resetMs, ...may }: PlacedMayStill, paint: Paint): string {
  const lines = [`  ${paint('dim', MAY_STILL[may.on])}${reasonLines(may, paint)}`]
  if (example !== undefined) lines.push(`        as with the input ${printable(JSON.stringify(example))}`)
  if (resetMs !== undefined) lines.push(`        until ${new Date(Date.now() + resetMs).toISOString()}`)
  return lines.join('\n')
}

const MAY_STILL: Readonly<Record<PlacedMayStill['on'], string>> = {
  input: 'by the input, it may still get:',
  run: 'by its run, it may still get:',
  code: 'by code, it may still get:',
  now: 'now, it would get:',
}

/** Returns a text with all changes of one way. */
function wayText(way: readonly PlacedChange[]): string {
  const texts = way.map(({ text, place }) => (place ? `${text} (${place.file}:${place.line}:${place.column})` : text))
  return printable(texts.join(', and '))
}

function hitsText({ hits, lastHitAt, countedSince }: PlacedReason): string | undefined {
  if (hits === undefined || countedSince === undefined) return undefined
  if (lastHitAt === undefined) return `no call has reached it since ${new Date(countedSince).toISOString()}`
  return `${count(hits, 'call')}, the last at ${new Date(lastHitAt).toISOString()}`
}
