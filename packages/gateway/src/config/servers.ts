import { statSync } from 'node:fs'
import path from 'node:path'
import type { ServerConfig, ToolOverlay } from './config.ts'
import { checkShape, found } from './explain.ts'
import { findPackageBin } from './package-bin.ts'
import { type ConfigPath, formatPath } from './problems.ts'
import { has, keysOf, type Reading } from './reading.ts'
import { type ServerInput, serverSchema, serversSchema } from './schema.ts'

const RESERVED: ReadonlySet<string> = new Set(['group', 'tag', 'category', 'hint'])
const DEFAULT_START_TIMEOUT_MS = 30_000
const DEFAULT_CALL_TIMEOUT_MS = 60_000

/** Reads `servers`: each by itself, so that one bad server does not hide the problems of another. */
export function readServers(reading: Reading): readonly ServerConfig[] {
  const { source } = reading
  if (!source.get(['servers'])?.entries) {
    checkShape(source, ['servers'], serversSchema)
    return []
  }
  return keysOf(source, ['servers']).flatMap((name) => {
    checkNameOf(reading, name)
    const input = checkShape(source, ['servers', name], serverSchema)
    return input ? [toServer(reading, name, input)] : []
  })
}

function checkNameOf({ source }: Reading, name: string): void {
  const at = { atKey: true }
  if (RESERVED.has(name))
    source.report(['servers', name], `the name "${name}" is reserved for selectors, expected another`, at)
  const problem = serversSchema.keyType.safeParse(name).error?.issues[0]?.message
  if (problem !== undefined)
    source.report(['servers', name], `found the name ${JSON.stringify(name)}, expected ${problem}`, at)
}

function toServer(reading: Reading, name: string, input: ServerInput): ServerConfig {
  const started = toCommand(reading, name, input)
  checkTransport(reading, name, input)
  checkUrl(reading, name, input)
  checkPer(reading, name, input)
  return {
    name,
    ...started,
    cwd: toFolder(reading, ['servers', name, 'cwd'], input.cwd),
    env: input.env ?? {},
    ...(input.url === undefined ? {} : { url: input.url }),
    headers: input.headers ?? {},
    era: input.era ?? 'auto',
    ...(input.per === 'shared' ? { per: input.per } : {}),
    loopback: input.loopback ?? false,
    trustHints: input.trustHints ?? false,
    startTimeoutMs: input.startTimeoutMs ?? DEFAULT_START_TIMEOUT_MS,
    callTimeoutMs: input.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS,
    // Absent fields stay absent: the schema writes no `undefined`.
    tools: new Map(Object.entries(input.tools ?? {}) as [string, ToolOverlay][]),
  }
}

function toCommand(reading: Reading, name: string, input: ServerInput): Pick<ServerConfig, 'command' | 'args'> {
  const args = input.args ?? []
  const { source } = reading
  if (input.package !== undefined && input.command === undefined) {
    const bin = findPackageBin(input.package, input.bin, reading.packagesFrom)
    if ('file' in bin) return { command: process.execPath, args: [bin.file, ...args] }
    source.report(['servers', name, bin.at], bin.problem)
    return { args }
  }
  if (input.bin !== undefined)
    source.report(['servers', name, 'bin'], 'found "bin" without "package", expected both', { atKey: true })
  if (input.command === undefined) return { args }
  // A path would be looked for from the child's own folder; a bare name is looked for on PATH.
  const isPath = input.command.includes('/')
  return { command: isPath ? path.resolve(reading.configDir, input.command) : input.command, args }
}

const CHILD_KEYS = ['args', 'cwd', 'env', 'loopback'] as const

function checkTransport({ source }: Reading, name: string, input: ServerInput): void {
  const at = ['servers', name]
  const report = (key: string, message: string): void => source.report([...at, key], message, { atKey: true })
  const isChild = input.command !== undefined || input.package !== undefined
  if (input.command !== undefined && input.package !== undefined)
    report('package', 'found "command" and "package", expected one of them')
  if (!isChild && input.url === undefined) source.report(at, 'expected "command", "package" or "url"', { atKey: true })
  if (!isChild) {
    for (const key of CHILD_KEYS)
      if (has(source, [...at, key])) report(key, `found "${key}" without "command" or "package", which it is for`)
  }
  if (input.url === undefined && input.headers !== undefined)
    report('headers', 'found "headers" without "url", which they are for')
  if (input.url !== undefined) return
  const withPort = [...Object.values(input.env ?? {}), ...(input.args ?? [])].some((text) => text.includes('${port}'))
  if (withPort)
    source.report(at, 'found ${port} without "url", expected a url such as "http://127.0.0.1:${port}/mcp"', {
      atKey: true,
    })
}

function checkUrl({ source }: Reading, name: string, input: ServerInput): void {
  const at = ['servers', name, 'url']
  if (input.url === undefined) return
  const isChild = input.command !== undefined || input.package !== undefined
  if (input.url.includes('${port}') && !isChild)
    source.report(at, 'found ${port} without "command" or "package", which is started with that port')
  const url = URL.parse(input.url.replaceAll('${port}', '65535'))
  if (url?.username || url?.password)
    source.report(at, 'found a user or password in the URL, expected them in "headers"')
  else if (!url || !/^https?:$/.test(url.protocol))
    source.report(at, `${found(source, at)}, expected a URL such as "http://127.0.0.1:9000/mcp"`)
}

const PER_USER =
  'found "user", which comes with a later version; until then one instance serves all users: write "shared" if the server keeps nothing of its callers'
const NOT_SHARED =
  'one process and one session serve all users, so user B can see what user A did there; write "per: shared" if the server keeps nothing of its callers'

/** Until each user can have an instance of their own, the operator has to know which servers mix them. */
function checkPer({ source }: Reading, name: string, { per }: ServerInput): void {
  const at = ['servers', name]
  if (per === 'user') source.report([...at, 'per'], PER_USER)
  if (per === undefined) source.warn({ code: 'server_not_shared', at, path: formatPath(at), text: NOT_SHARED })
}

/** Gives the folder that stands at a place, absolute. */
export function toFolder({ source, configDir }: Reading, at: ConfigPath, cwd: string | undefined): string {
  const folder = path.resolve(configDir, cwd ?? '.')
  if (cwd !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    source.report(at, `${found(source, at)}, expected a folder; there is none at ${folder}`)
  return folder
}
