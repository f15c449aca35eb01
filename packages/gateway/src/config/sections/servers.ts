import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { didYouMean } from '@toolgate/values'
import { isObject, type JsonObject, readOwnJson } from '@toolgate/values/json'
import type { ServerConfig } from '../config.ts'
import { mentionsOwner } from '../instance-config.ts'
import { toMay } from '../may.ts'
import { checkPer } from '../per-user.ts'
import { type ConfigPath, formatPath } from '../problems.ts'
import { checkServerOAuth } from '../check-server-oauth.ts'
import { checkPublicUrl } from './oauth.ts'
import { proxy, readProxy } from './proxy.ts'
import { checkShape, found, has, keysOf, readEach, type Reading } from '../reading.ts'
import type { Section } from '../section.ts'
import { type ServerInput, serverSchema, serversSchema } from '../schema/servers.ts'

const RESERVED: ReadonlySet<string> = new Set(['group', 'tag', 'category', 'hint'])
const DEFAULTS = {
  headers: {},
  era: 'auto',
  per: 'user',
  loopback: false,
  trustHints: false,
  offers: ['tools'],
  startTimeoutMs: 30_000,
  callTimeoutMs: 60_000,
} as const

export const servers: Section<readonly ServerConfig[]> = { schema: serversSchema, isRequired: true, read: readServers }

/** Reads servers one by one, so that every problem is reported. */
function readServers(reading: Reading): readonly ServerConfig[] {
  const { source } = reading
  // Without a mapping, one problem is reported for the whole file.
  if (!source.root?.entries) return []
  if (!has(source, ['servers'])) checkShape(source, ['servers'], serversSchema)
  const read = readEach(source, ['servers'], serversSchema, (at, name) => {
    if (RESERVED.has(String(name)))
      source.report(at, `the name "${name}" is reserved for selectors, expected another`, { atKey: true })
    return readServer(reading, String(name))
  })
  if (read.some(({ oauth }) => oauth))
    checkPublicUrl(source, 'servers.*.oauth', 'people come back to a URL that their browser knows')
  return read
}

function readServer(reading: Reading, name: string): ServerConfig | undefined {
  const { source } = reading
  const absent = source.absent.get(name) ?? []
  const before = source.problems.length
  const input = checkShape(source, ['servers', name], serverSchema)
  if (absent.length === 0) return input && toServer(reading, name, input)
  return source.problems.length > before ? undefined : toWaiting(name, input ?? {}, absent)
}

/** Returns a server that waits for absent values. It is complete once they are there and the file is read again. */
function toWaiting(
  name: string,
  { per, offers, tools, resources, prompts }: ServerInput,
  absent: NonNullable<ServerConfig['absent']>,
): ServerConfig {
  return {
    ...DEFAULTS,
    name,
    args: [],
    env: {},
    ...(per && { per }),
    ...(offers && { offers }),
    tools: new Map(Object.entries(tools ?? {})),
    ...(resources && { resources: new Map(Object.entries(resources)) }),
    ...(prompts && { prompts: new Map(Object.entries(prompts)) }),
    absent,
  }
}

function toServer(reading: Reading, name: string, input: ServerInput): ServerConfig {
  const started = toCommand(reading, name, input)
  checkTransport(reading, name, input)
  checkUrl(reading, name, input)
  checkPer(reading, name, input)
  checkMay(reading, name, input)
  checkAccepts(reading, name, input)
  checkToolNames(reading, name, input)
  checkServerOAuth(reading, name, input)
  const env = { ...toPassed(reading, name, input), ...input.env }
  const {
    package: _,
    bin: _bin,
    pass: _pass,
    proxy: _proxy,
    ca: _ca,
    listing,
    may,
    tools,
    resources,
    prompts,
    ...rest
  } = input
  return {
    ...DEFAULTS,
    ...(input.offers === undefined ? { offersByDefault: true as const } : {}),
    ...rest,
    env,
    name,
    ...started,
    ...toCwd(reading, name, input),
    ...toOutbound(reading, name, input),
    // Most servers that need a token list no tools without one.
    ...((listing ?? (input.oauth && 'user')) === 'user' ? { listing: 'user' as const } : {}),
    ...(may === undefined ? {} : { may: toMay(may) }),
    tools: new Map(Object.entries(tools ?? {})),
    ...(resources && { resources: new Map(Object.entries(resources)) }),
    ...(prompts && { prompts: new Map(Object.entries(prompts)) }),
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
  // A path would otherwise be resolved from the child's folder. A bare name is looked up on PATH.
  const isPath = input.command.includes('/')
  return { command: isPath ? path.resolve(reading.configDir, input.command) : input.command, args }
}

/** Returns the variables of `pass`, with a warning for each that is not set. */
function toPassed({ source, variable }: Reading, name: string, { pass = [] }: ServerInput): Record<string, string> {
  const passed = pass.map((one, i) => {
    const value = variable(one)
    const at = ['servers', name, 'pass', i]
    if (value === undefined)
      source.warn({
        code: 'variable_unset',
        at,
        path: formatPath(at),
        text: `the environment variable ${one} is not set`,
      })
    return [one, value] as const
  })
  return Object.fromEntries(passed.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** Returns how a server is reached. A child is on this machine. */
function toOutbound(reading: Reading, name: string, input: ServerInput): Pick<ServerConfig, 'proxy' | 'ca'> {
  const { source } = reading
  const at = ['servers', name, 'proxy']
  const isRemote = input.url !== undefined && input.command === undefined && input.package === undefined
  if (!isRemote && input.proxy !== undefined)
    source.report(at, 'found "proxy", expected it for a server that is reached by "url" and not started', {
      atKey: true,
    })
  const rules = isRemote ? (input.proxy === undefined ? reading.of(proxy) : readProxy(reading, at)) : undefined
  const ca = input.ca === undefined ? undefined : readAuthorities(reading, name, input, input.ca)
  return { ...(rules && { proxy: rules }), ...(ca !== undefined && { ca }) }
}

function readAuthorities(
  { source, configDir }: Reading,
  name: string,
  { url }: ServerInput,
  file: string,
): string | undefined {
  const at = ['servers', name, 'ca']
  if (!url?.startsWith('https:')) source.report(at, 'found "ca", which needs a "url" with https', { atKey: true })
  const pem = readPem(path.resolve(configDir, file))
  if (pem === undefined) source.report(at, `${found(source, at)}, expected a file with certificates in PEM`)
  return pem
}

const MAX_PEM_BYTES = 1024 * 1024

function readPem(file: string): string | undefined {
  try {
    if (statSync(file).size > MAX_PEM_BYTES) return undefined
    const pem = readFileSync(file, 'utf8')
    // It throws for a text that begins with no certificate.
    return new X509Certificate(pem).raw.length > 0 ? pem : undefined
  } catch {
    return undefined
  }
}

const CHILD_KEYS = ['args', 'cwd', 'env', 'pass', 'loopback'] as const

function checkTransport({ source }: Reading, name: string, input: ServerInput): void {
  const at = ['servers', name]
  const report = (key: string, message: string): void => source.report([...at, key], message, { atKey: true })
  const isChild = input.command !== undefined || input.package !== undefined
  if (input.command !== undefined && input.package !== undefined)
    report('package', 'found "command" and "package", expected one of them')
  if (!isChild && input.url === undefined) source.report(at, 'expected "command", "package" or "url"', { atKey: true })
  if (!isChild) {
    for (const key of CHILD_KEYS)
      if (has(source, [...at, key])) report(key, `found "${key}", which needs "command" or "package"`)
  }
  if (input.url === undefined && input.headers !== undefined) report('headers', 'found "headers", which need "url"')
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

const SHARED_OPENS = 'found "open" for a server with "per: shared": a page that one user opens would serve all of them'

/**
 * Rejects `open` for a shared server: a URL that one user opens connects an account, which all users would then share.
 */
function checkMay({ source }: Reading, name: string, { may = [], per }: ServerInput): void {
  const i = may.findIndex((entry) => typeof entry === 'object')
  if (per === 'shared' && i !== -1) source.report(['servers', name, 'may', i, 'open'], SHARED_OPENS, { atKey: true })
}

/** Checks that the labels are defined. `trusted` is not allowed: no server can mark its own output as trusted. */
function checkAccepts({ source }: Reading, name: string, { accepts = [] }: ServerInput): void {
  const known = [UNTRUSTED, ...keysOf(source, ['labels']).filter((label) => label !== TRUSTED)]
  for (const [i, label] of accepts.entries()) {
    const at = ['servers', name, 'accepts', i]
    if (label === TRUSTED) source.report(at, 'found "trusted", which no server can say of itself')
    else if (!known.includes(label))
      source.report(at, `${found(source, at)}, expected ${UNTRUSTED} or a key of "labels"${didYouMean(label, known)}`)
  }
}

const UNTRUSTED = 'untrusted'
const TRUSTED = 'trusted'

/** Returns the working folder. An instance uses its own folder, or a folder whose name contains its user. */
function toCwd(
  reading: Reading,
  name: string,
  { cwd, url, command, package: from, per = 'user' }: ServerInput,
): { readonly cwd?: string } {
  const isChild = command !== undefined || from !== undefined || url === undefined
  if (per === 'user' && isChild && cwd === undefined) return {}
  if (per === 'user' && cwd !== undefined && mentionsOwner(cwd)) return { cwd: path.resolve(reading.configDir, cwd) }
  return { cwd: toFolder(reading, ['servers', name, 'cwd'], cwd) }
}

/** Rejects a name for a glob, since several tools cannot share a name. */
function checkToolNames({ source }: Reading, server: string, { tools = {} }: ServerInput): void {
  const keys = new Map<string, string>()
  for (const [key, { name }] of Object.entries(tools)) {
    if (name === undefined) continue
    const at = ['servers', server, 'tools', key, 'name']
    const other = keys.get(name)
    if (key.includes('*')) source.report(at, `${found(source, at)} for a glob, expected it for the name of one tool`)
    else if (other !== undefined) source.report(at, `${found(source, at)}, which "${other}" has too, expected another`)
    keys.set(name, key)
  }
}

/** Returns the absolute folder at a path of the file. */
export function toFolder({ source, configDir }: Reading, at: ConfigPath, cwd: string | undefined): string {
  const folder = path.resolve(configDir, cwd ?? '.')
  if (cwd !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    source.report(at, `${found(source, at)}, expected a folder; there is none at ${folder}`)
  return folder
}

/** The file of a package's command, or the reason why there is none. */
type PackageBin = { readonly file: string } | { readonly at: 'package' | 'bin'; readonly problem: string }

/**
 * Finds the file behind a command of an installed npm package.
 *
 * It is resolved from each of `from` in turn (absolute file names), as Node resolves modules.
 * `package.json` is read from the disk, because `exports` may hide it from `require`.
 */
export function findPackageBin(name: string, bin: string | undefined, from: readonly string[]): PackageBin {
  const folder = findPackage(name, from)
  if (!folder)
    return {
      at: 'package',
      problem: `the package "${name}" is not installed; install it with npm beside the configuration`,
    }
  const bins = readBins(path.join(folder, 'package.json'), name)
  if (bins.size === 0) return { at: 'package', problem: `the package "${name}" has no command` }
  const names = [...bins.keys()].join(', ')
  const file = bin !== undefined ? bins.get(bin) : bins.size === 1 ? [...bins.values()][0] : bins.get(unscoped(name))
  if (file !== undefined) return { file: path.join(folder, file) }
  return bin === undefined
    ? { at: 'package', problem: `the package "${name}" has several commands, choose one with "bin": ${names}` }
    : { at: 'bin', problem: `found "${bin}", expected a command of the package "${name}": ${names}` }
}

function findPackage(name: string, from: readonly string[]): string | undefined {
  for (const start of from) {
    for (const modules of createRequire(start).resolve.paths(name) ?? []) {
      const folder = path.join(modules, name)
      if (readJson(path.join(folder, 'package.json'))) return folder
    }
  }
  return undefined
}

function readBins(file: string, name: string): ReadonlyMap<string, string> {
  const bin: unknown = readJson(file)?.['bin']
  if (typeof bin === 'string') return new Map([[unscoped(name), bin]])
  if (typeof bin !== 'object' || bin === null) return new Map()
  return new Map(Object.entries(bin).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

function readJson(file: string): JsonObject | undefined {
  try {
    const value: unknown = readOwnJson(readFileSync(file, 'utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function unscoped(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
