import type { HaltRow, InForceBody } from '@toolgate/gateway'
import { type Api, createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { gatewayOf, nextCommand, quoted } from '../next-command.ts'
import { count } from '../render.ts'
import { renderTable } from '../table.ts'

/** The target of a halt, as options. */
export interface Named {
  readonly user?: string
  readonly session?: string
  readonly tool?: string
  readonly tenant?: string
  readonly all?: boolean
}

export interface HaltOptions extends TargetOptions, Named {
  readonly reason?: string
  readonly json?: boolean
}

export interface ReleaseOptions extends TargetOptions, Named {
  readonly id?: string
  readonly json?: boolean
}

const FIELDS = ['user', 'session', 'tool', 'tenant'] as const

/** `toolgate halts`: prints the halts, newest first. */
export async function haltsCommand(options: TargetOptions & { json?: boolean }, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).halts()
  if (options.json) printJson(io.stdout, body)
  else if (body.halts.length === 0) printLine(io.stdout, 'Nothing is halted.')
  else {
    const rows = body.halts.map(({ id, target, reason, by, since, reach }) => [
      printable(id),
      printable(wordsOf(target)),
      reachWords({ target, reach }),
      new Date(since).toISOString(),
      printable(by ?? ''),
      printable(reason),
    ])
    printLine(io.stdout, renderTable(['ID', 'HALTED', 'NOW', 'SINCE', 'BY', 'REASON'], rows, io.stdout))
  }
  return 'ok'
}

/** `toolgate halt`: sets a halt, which is in effect when the command ends. Warns if the target matches nothing now. */
export async function haltCommand(options: HaltOptions, io: Io): Promise<ExitName> {
  const { reason } = options
  const row = await createApi(findTarget(options, io)).halt({
    ...targetOf(options),
    ...(reason !== undefined && { reason }),
  })
  if (options.json) printJson(io.stdout, row)
  else {
    const paint = painter(io.stdout, io.env)
    printLine(io.stdout, `${paint('red', 'halted')}  ${printable(wordsOf(row.target))}: ${reachWords(row)} now`)
    if (row.inForce) printLine(io.stdout, forceWords(row.inForce))
    printLine(io.stdout, `To undo it: ${nextCommand(`release --id ${printable(row.id)}`, gatewayOf(options))}`)
  }
  warn(row, io)
  return 'ok'
}

/** `toolgate release`: ends a halt, by its id or its target. */
export async function releaseCommand(options: ReleaseOptions, io: Io): Promise<ExitName> {
  const api = createApi(findTarget(options, io))
  const row = await api.release(await findId(options, api))
  if (options.json) printJson(io.stdout, row)
  else printLine(io.stdout, `released  ${printable(wordsOf(row.target))} (${printable(row.reason)})`)
  return 'ok'
}

async function findId(options: ReleaseOptions, api: Api): Promise<string> {
  if (options.id !== undefined) return options.id
  const asked = targetOf(options)
  const [{ halts }, { tenant }] = await Promise.all([api.halts(), api.session()])
  // The gateway adds the tenant to the halts of a person with a tenant, so this target needs it too.
  const wanted = tenant === undefined ? asked : 'all' in asked ? { tenant } : { ...asked, tenant }
  const found = halts.find(({ target }) => wordsOf(target) === wordsOf(wanted))
  if (found) return found.id
  // The same target within a tenant: only people without a tenant see those.
  const near = halts.filter(({ target }) => wordsOf({ ...target, tenant: undefined }) === wordsOf(wanted))
  const elsewhere = near.flatMap(({ target }) => target.tenant ?? [])
  if (elsewhere[0] !== undefined)
    throw new CliError('usage', `There is no such halt of all tenants: ${printable(wordsOf(wanted))}.`, {
      hint: `It is halted in ${elsewhere.map((one) => `"${printable(one)}"`).join(', ')}: add --tenant ${quoted(elsewhere[0])}.`,
    })
  throw new CliError('usage', `There is no such halt: ${printable(wordsOf(wanted))}.`, {
    hint: `"${nextCommand('halts', gatewayOf(options))}" lists the halts.`,
  })
}

type WrittenTarget = { readonly all: true } | Omit<Named, 'all'>

function targetOf({ all, user, session, tool, tenant }: Named): WrittenTarget {
  if (all) return { all }
  return { ...(user && { user }), ...(session && { session }), ...(tool && { tool }), ...(tenant && { tenant }) }
}

/** Returns a target as a text in a fixed order: equal targets have equal texts. */
function wordsOf(target: HaltRow['target'] | WrittenTarget): string {
  if ('all' in target && target.all) return 'everything'
  const named: { readonly [Field in (typeof FIELDS)[number]]?: string | undefined } = target
  return FIELDS.flatMap((field) => (named[field] === undefined ? [] : [`${field} ${named[field]}`])).join(', ')
}

/** Returns what a halt stops now. Nobody counts the tools of a session. */
function reachWords({ target, reach: { tools, people } }: Pick<HaltRow, 'target' | 'reach'>): string {
  if (tools === 0 || people === 0) return 'nothing'
  const counted = [
    ...(target.session === undefined || target.tool !== undefined ? [count(tools, 'tool')] : ['its calls']),
    ...(people === undefined ? [] : [count(people, 'person', 'people')]),
  ]
  return counted.join(', ')
}

/** Returns a text about the replicas on which a halt is in force. */
function forceWords({ replicas, unconfirmed, by }: InForceBody): string {
  if (unconfirmed.length === 0) return `In force on ${replicas > 1 ? 'all ' : ''}${count(replicas, 'replica')}.`
  const time = new Date(by).toISOString().slice(11, 19)
  return `Not confirmed by ${unconfirmed.map(printable).join(', ')}; in force there by ${time}Z at the latest.`
}

/** Warns about a halt that matches nothing now, because its name may be misspelt. */
function warn({ target, reach }: HaltRow, io: Io): void {
  const { tools, nearestTools, people, nearestPeople } = reach
  const whom = [target.user, target.tenant].filter((name) => name !== undefined).map((name) => `"${printable(name)}"`)
  const nobody =
    target.user === undefined ? `no user of ${whom.join()} was seen` : `nobody named ${whom.join(' of ')} was seen`
  const tool = target.tool === undefined ? 'there are no tools' : `no tool is "${printable(target.tool)}"`
  const isToolUnknown = people === 0 ? nearestTools !== undefined : tools === 0
  const problems = [
    ...(people === 0 ? [`${nobody}.${nearWords(nearestPeople)}`] : []),
    ...(isToolUnknown ? [`${tool}.${nearWords(nearestTools)}`] : []),
  ]
  const paint = painter(io.stderr, io.env)
  for (const problem of problems)
    printLine(io.stderr, `${paint('yellow', 'WARNING')}  It stops nothing now: ${problem}`)
  if (problems.length > 0) printLine(io.stderr, 'It stays in effect for whoever and whatever matches later.')
}

function nearWords(names: readonly string[] = []): string {
  return names.length === 0 ? '' : ` Did you mean ${names.map((name) => `"${printable(name)}"`).join(' or ')}?`
}
