import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '@toolgate/values/json'
import {
  checkMovable,
  type ClientFile,
  findClientFile,
  hostOf,
  readClientFile,
  withEntries,
} from '../clients/client-file.ts'
import { gatewayEntry, type GatewayEntry } from '../clients/gateway-entry.ts'
import { importEntry, type ImportedServer, toServerName } from '../clients/import-entry.ts'
import type { FileChange } from '../clients/text-file.ts'
import { applyChanges, backupPath } from '../clients/undo.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { hasSecrets, prepareSecrets, secretChanges, toTrial } from '../project/secret-files.ts'
import { checkConfig, type ConfigFile, openConfig, serverNames, withServer } from '../project/config-file.ts'
import { probeServers, REVIEW, tagsOf } from '../project/probe-servers.ts'
import { count } from '../render.ts'
import { undoCommand } from './connect.ts'
import type { ServeDeps } from './serve.ts'

export interface ImportCommandOptions {
  readonly config: string
  readonly as?: string
  readonly name: string
  readonly project?: boolean
  readonly local?: boolean
  readonly file?: string
  readonly apply?: boolean
  readonly undo?: boolean
  /** Leaves the client's file unchanged. */
  readonly keep?: boolean
  /** `false` with `--no-start`. */
  readonly start: boolean
  readonly json?: boolean
}

/** One server of the client, with the planned change. */
interface Planned extends ImportedServer {
  readonly from: string
  readonly name: string
  /** Whether the configuration already has this server. */
  readonly isThere: boolean
}

interface Plan {
  readonly opened: ClientFile
  readonly config: ConfigFile
  readonly servers: readonly Planned[]
  readonly left: readonly { readonly from: string; readonly reason: string }[]
  /** The entry that replaces the client's servers. Absent with `--keep`. */
  readonly entry: GatewayEntry | undefined
}

/**
 * `toolgate import <client>`: moves the servers of a client to the configuration, and replaces them with the gateway in
 * the client's file. Without `--apply` it only prints the changes.
 */
export async function importCommand(
  client: string,
  options: ImportCommandOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const host = hostOf(io.env)
  const found = findClientFile(client, options, host)
  if (options.undo) return undoCommand(found.file, options, io)
  const opened = readClientFile(found.client, found.file, options.local ? host.cwd : undefined)
  checkMovable(opened)
  const plan = planOf(opened, openConfig(options.config), options)
  const after = await configAfter(plan, options, { io, start })
  const isWritten = options.apply === true && plan.servers.length > 0
  if (isWritten) {
    const { config, entry } = plan
    const secrets = secretChanges(
      config.file,
      plan.servers.flatMap((one) => (one.isThere ? [] : one.secrets)),
    )
    const changes: FileChange[] = [
      ...secrets,
      { file: path.resolve(config.file), before: config.text, after: after.text },
    ]
    const entries = new Map<string, object | undefined>(plan.servers.map(({ from }) => [from, undefined]))
    if (entry) {
      entries.set(options.name, entry.value)
      changes.push({ file: opened.file, before: opened.text, after: withEntries(opened, entries) })
    }
    prepareSecrets(config.file, secrets)
    applyChanges(opened.file, `toolgate import ${client}`, changes)
  }
  if (options.json) printJson(io.stdout, toJson(plan, isWritten))
  else printPlan(plan, { client, isWritten, options }, io)
  return 'ok'
}

function planOf(opened: ClientFile, config: ConfigFile, options: ImportCommandOptions): Plan {
  const taken = new Set(serverNames(config))
  const servers: Planned[] = []
  const left: { from: string; reason: string }[] = []
  for (const [from, given] of opened.servers) {
    // The names of the files of secrets begin with the name of the server.
    const same = [...taken].find((one) => isSame(config, one, importEntry(one, given)))
    const name = same ?? toServerName(from, opened.client.id, taken)
    const result = from === options.name ? { left: 'it is this gateway' } : importEntry(name, given)
    if ('left' in result) {
      left.push({ from, reason: result.left })
      continue
    }
    taken.add(name)
    servers.push({ ...result, from, name, isThere: same !== undefined })
  }
  const takes = servers.length > 0 && !options.keep
  return { opened, config, servers, left, entry: takes ? gatewayEntry(opened.client, options) : undefined }
}

/** Whether the configuration has a server with the same entry and the same secrets. */
function isSame({ doc, file }: ConfigFile, name: string, result: ReturnType<typeof importEntry>): boolean {
  if ('left' in result) return false
  const { entry, secrets } = result
  const { servers } = doc.toJS() as { readonly servers?: unknown }
  const known = isObject(servers) ? servers[name] : undefined
  const isEqual = isObject(known) && Object.entries(entry).every(([key, value]) => isDeepStrictEqual(known[key], value))
  return isEqual && hasSecrets(file, secrets)
}

/** Returns the configuration with the servers. If the plan is to be written, servers that can start now get tags. */
async function configAfter(
  { config, servers }: Plan,
  options: ImportCommandOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ConfigFile> {
  const fresh = servers.filter(({ isThere }) => !isThere)
  if (fresh.length === 0) return config
  const added = fresh.reduce((file, { name, entry }) => withServer(file, name, entry), config)
  const starts = options.apply === true && options.start
  // The secrets are written last, so a trial has them from variables.
  const trials = fresh.map(({ name, entry, secrets }) => ({ name, ...toTrial(entry, secrets) }))
  const tried = trials.reduce((file, { name, entry }) => withServer(file, name, entry), config)
  const env = Object.assign({}, io.env, ...trials.map((one) => one.env)) as typeof io.env
  const checked = await checkConfig(tried, env, { starts })
  if (!starts) return added
  const complete = new Set(checked.servers.filter(({ absent }) => !absent).map(({ name }) => name))
  const startable = fresh.map(({ name }) => name).filter((name) => complete.has(name))
  if (startable.length === 0) return added
  const probed = await probeServers(startable, checked, start)
  return fresh.reduce((file, { name, entry }) => {
    const one = probed.get(name)
    return withServer(file, name, { ...entry, ...(one && 'tools' in one ? tagsOf(one.tools) : {}) }, { tools: REVIEW })
  }, config)
}

function toJson({ opened, config, servers, left }: Plan, isWritten: boolean): object {
  return {
    client: opened.client.id,
    file: opened.file,
    config: config.file,
    written: isWritten,
    servers: servers.map(toRow),
    left,
  }
}

/** Returns a planned server without the values of its secrets. */
function toRow({ secrets, ...rest }: Planned): object {
  return { ...rest, secrets: secrets.map(({ file, from }) => ({ file, from })) }
}

function printPlan(
  plan: Plan,
  {
    client,
    isWritten,
    options,
  }: { readonly client: string; readonly isWritten: boolean; readonly options: ImportCommandOptions },
  io: Io,
): void {
  const { opened, config, servers, left, entry } = plan
  const paint = painter(io.stdout, io.env)
  const say = (line: string) => printLine(io.stdout, line)
  say(paint('bold', `${opened.client.title}: ${printable(opened.file)}`))
  if (opened.text === undefined) say('  There is no such file.')
  for (const server of servers) printServer(server, say, paint)
  for (const { from, reason } of left) say(`  ${paint('yellow', 'stays')}  ${printable(from)}: ${printable(reason)}`)
  if (servers.length === 0) {
    say('There is nothing to import.')
    if (hasLocal(opened, options, io))
      say(`It has servers for this folder: toolgate import ${printable(client)} --local`)
    return
  }
  const verb = isWritten ? 'got' : 'would get'
  say(`${printable(config.file)} ${verb} ${count(servers.filter(({ isThere }) => !isThere).length, 'server')}.`)
  if (entry)
    say(`${opened.client.title} ${verb} "${printable(options.name)}" in their place: ${printable(entry.does)}.`)
  const names = [...new Set(servers.flatMap(({ variables }) => variables))].filter((name) => !io.env[name])
  if (names.length > 0)
    say(`Set where the gateway runs: ${names.map(printable).join(', ')}. A server waits until its variables are set.`)
  if (!isWritten) {
    const as = options.as === undefined ? '' : ` --as ${printable(options.as)}`
    const local = options.local ? ' --local' : ''
    return say(`\nNothing was changed. To write it: toolgate import ${printable(client)}${local}${as} --apply`)
  }
  say(`The files as they were, with the values of secrets: ${printable(backupPath(opened.file))}`)
  say(`To take it back: toolgate import ${printable(client)}${options.local ? ' --local' : ''} --undo`)
  if (entry) say(opened.client.restart)
}

/** Whether Claude Code has servers in its local scope, where "claude mcp add" writes by default. */
function hasLocal({ client }: ClientFile, { local }: ImportCommandOptions, io: Io): boolean {
  if (local || client.folders === undefined) return false
  const host = hostOf(io.env)
  return readClientFile(client, findClientFile(client.id, { local: true }, host).file, host.cwd).servers.size > 0
}

function printServer(
  { from, name, entry, secrets, isThere }: Planned,
  say: (line: string) => void,
  paint: ReturnType<typeof painter>,
): void {
  const { url, command, args = [] } = entry as { url?: string; command?: string; args?: readonly string[] }
  const what = printable(url ?? [command, ...args].join(' '))
  say(`  ${paint('green', isThere ? 'there' : 'moves')}  ${printable(from)} → servers.${name}: ${what}`)
  for (const { file, from: place } of secrets)
    say(`         ${printable(place)} is a secret, kept in ${printable(file)}`)
}
