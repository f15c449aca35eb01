import type { HaltReach, HaltRow } from '@toolgate/gateway'
import { type Api, createApi, findTarget, type TargetOptions } from '../client.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable, count } from '../render.ts'

/** What is halted, as the command line names it. */
export interface Named {
  readonly user?: string
  readonly session?: string
  readonly tool?: string
  readonly tenant?: string
  readonly all?: boolean
}

export interface HaltOptions extends TargetOptions, Named {
  readonly reason: string
  /** Halts it even if nothing has the name now. */
  readonly force?: boolean
  readonly json?: boolean
}

export interface ReleaseOptions extends TargetOptions, Named {
  readonly id?: string
  readonly json?: boolean
}

const FIELDS = ['user', 'session', 'tool', 'tenant'] as const

/** `toolgate halts`: what is halted, newest first. */
export async function haltsCommand(options: TargetOptions & { json?: boolean }, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io.env)).halts()
  if (options.json) printJson(io.stdout, body)
  else if (body.halts.length === 0) printLine(io.stdout, 'Nothing is halted.')
  else {
    const rows = body.halts.map(({ id, target, reason, by, since, reach }) => [
      printable(id),
      printable(wordsOf(target)),
      reachWords(reach),
      new Date(since).toISOString(),
      printable(by ?? ''),
      printable(reason),
    ])
    printLine(io.stdout, renderTable(['ID', 'HALTED', 'NOW', 'SINCE', 'BY', 'REASON'], rows, io.stdout))
  }
  return 'ok'
}

/**
 * `toolgate halt`: in force when it ends. The gateway refuses a name that nothing has, unless it is forced; then it
 * ends with `no`.
 */
export async function haltCommand(options: HaltOptions, io: Io): Promise<ExitName> {
  const { reason, force } = options
  const target = targetOf(options)
  const row = await createApi(findTarget(options, io.env)).halt({ ...target, reason, ...(force ? { force } : {}) })
  if (options.json) printJson(io.stdout, row)
  else {
    const paint = painter(io.stdout, io.env)
    printLine(io.stdout, `${paint('red', 'halted')}  ${printable(wordsOf(row.target))}: ${reachWords(row.reach)} now`)
    printLine(io.stdout, `To release it: toolgate release --id ${printable(row.id)}`)
  }
  return warn(row, io) ? 'no' : 'ok'
}

/** `toolgate release`: by id, or named as it was halted. */
export async function releaseCommand(options: ReleaseOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io.env))
  const row = await api.release(await findId(options, api))
  if (options.json) printJson(io.stdout, row)
  else printLine(io.stdout, `released  ${printable(wordsOf(row.target))} (${printable(row.reason)})`)
  return 'ok'
}

async function findId(options: ReleaseOptions, api: Api): Promise<string> {
  if (options.id !== undefined) {
    if (FIELDS.some((field) => options[field] !== undefined) || options.all)
      throw new CliError('usage', 'Give --id, or what is halted; not both.')
    return options.id
  }
  const asked = targetOf(options)
  const [{ halts }, { tenant }] = await Promise.all([api.halts(), api.session()])
  // The gateway narrows what a person of a tenant halts to the tenant, and so what he names here.
  const meant = tenant === undefined ? asked : 'all' in asked ? { tenant } : { ...asked, tenant }
  const found = halts.find(({ target }) => wordsOf(target) === wordsOf(meant))
  if (found) return found.id
  throw new CliError('usage', `Nothing is halted so: ${printable(wordsOf(meant))}.`, {
    hint: '"toolgate halts" lists what is.',
  })
}

type Target = { readonly all: true } | Omit<Named, 'all'>

function targetOf({ all, user, session, tool, tenant }: Named): Target {
  const named = { ...(user && { user }), ...(session && { session }), ...(tool && { tool }), ...(tenant && { tenant }) }
  const empty = FIELDS.find((field) => ({ user, session, tool, tenant })[field] === '')
  if (empty) throw new CliError('usage', `--${empty} is empty.`)
  const isNamed = Object.keys(named).length > 0
  if (all && isNamed)
    throw new CliError('usage', '--all cannot be combined with other options, as it covers everything.')
  if (all) return { all }
  if (isNamed) return named
  throw new CliError('usage', 'Name what is halted, with --user, --session, --tool, --tenant, or --all.')
}

/** In one order, so that equal targets read the same. */
function wordsOf(target: HaltRow['target'] | Target): string {
  if ('all' in target && target.all) return 'everything'
  const named: { readonly [Field in (typeof FIELDS)[number]]?: string | undefined } = target
  return FIELDS.flatMap((field) => (named[field] === undefined ? [] : [`${field} ${named[field]}`])).join(', ')
}

function reachWords({ tools, callers }: HaltReach): string {
  return [count(tools, 'tool'), ...(callers === undefined ? [] : [count(callers, 'configured agent')])].join(', ')
}

/** Whoever halts in a hurry must not be left thinking that a misspelt name is halted. */
function warn({ target, reach, id }: HaltRow, io: Io): boolean {
  const { tools, nearestTool, callers } = reach
  const near = nearestTool === undefined ? '' : ` Did you mean "${printable(nearestTool)}"?`
  const tool = target.tool === undefined ? 'there is no tool' : `no tool is "${printable(target.tool)}"`
  const whom = [target.user, target.tenant].filter((name) => name !== undefined).map((name) => `"${printable(name)}"`)
  const problems = [
    ...(tools === 0 ? [`${tool}.${near}`] : []),
    ...(callers === 0 ? [`no configured agent is ${whom.join(' of ')}.`] : []),
  ]
  if (problems.length === 0) return false
  const paint = painter(io.stderr, io.env)
  for (const problem of problems)
    printLine(io.stderr, `${paint('yellow', 'WARNING')}  It stops nothing now: ${problem}`)
  printLine(io.stderr, `It stays in force for what comes, until: toolgate release --id ${printable(id)}`)
  return true
}
