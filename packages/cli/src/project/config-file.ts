import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { errnoOf, messageOf } from '@toolgate/values'
import { ConfigFileError, type GatewayConfig, loadConfig, readConfig } from '@toolgate/gateway'
import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isScalar,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml'
import { CliError } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, printable } from '../io.ts'
import { isTaken } from '../new-file.ts'
import { rewriteFile } from '../replace-file.ts'

/** A configuration that a command changes. */
export interface ConfigFile {
  readonly file: string
  readonly text: string
  readonly doc: Document
}

/** @throws {CliError} `usage` for a file that does not exist, a link without a target, and a file that is not YAML */
export function openConfig(file: string): ConfigFile {
  try {
    return parseConfig(file, readFileSync(file, 'utf8'))
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    const isAbsent = errnoOf(cause) === 'ENOENT' && !isTaken(file)
    const reason = isAbsent ? 'there is no such file' : (errnoOf(cause) ?? messageOf(cause))
    throw new CliError('usage', `${printable(file)} cannot be read: ${reason}.`, {
      ...(isAbsent && { hint: 'Make one with "toolgate init", or name it with --config.' }),
      cause,
    })
  }
}

function parseConfig(file: string, text: string): ConfigFile {
  const doc = parseDocument(text)
  const [error] = doc.errors
  if (error) throw new CliError('usage', `${printable(file)}: ${printable(error.message)}`)
  const servers: unknown = doc.get('servers')
  if (!isMap(doc.contents) || !(servers === undefined || servers === null || isMap(servers)))
    throw new CliError('usage', `${printable(file)} is not a configuration: "servers" must be a mapping.`)
  return { file, text, doc }
}

/** Names of the servers in the file. */
export function serverNames({ doc }: ConfigFile): readonly string[] {
  const servers: unknown = doc.get('servers')
  return isMap(servers) ? servers.items.map(({ key }) => String(isScalar(key) ? key.value : key)) : []
}

/** Returns the line of a key, or of the nearest one above it that the file has. */
export function lineOf({ doc, text }: ConfigFile, at: readonly string[]): number {
  const pair = pairAt(doc.contents, at)
  if (pair === undefined && at.length > 0) return lineOf({ doc, text, file: '' }, at.slice(0, -1))
  const key = pair?.key
  const start = isNode(key) ? (key.range?.[0] ?? 0) : 0
  return text.slice(0, start).split('\n').length
}

function pairAt(node: unknown, [key, ...rest]: readonly string[]): Pair | undefined {
  const pair = isMap(node) ? node.items.find((one) => isScalar(one.key) && one.key.value === key) : undefined
  return pair === undefined || rest.length === 0 ? pair : pairAt(pair.value, rest)
}

/**
 * Returns the configuration with a server added, or replaced if the name exists. Everything else stays as it is
 * written, byte for byte, unless the servers are on one line.
 */
export function withServer(config: ConfigFile, name: string, entry: object, comments: EntryComments = {}): ConfigFile {
  const { file, text } = config
  const { doc } = parseConfig(file, text)
  const isNew = !serverNames(config).includes(name)
  doc.setIn(['servers', name], entryNode(doc, entry, comments))
  const servers = doc.get('servers') as YAMLMap
  if (servers.items.length === 1) servers.flow = false
  const inserted = isNew ? insertServer(config, name, entryNode(doc, entry, comments)) : undefined
  const isSame = inserted !== undefined && isDeepStrictEqual(parseDocument(inserted).toJS(), doc.toJS())
  return parseConfig(file, isSame ? inserted : doc.toString(STYLE))
}

/** Comments before the keys of an entry. */
export type EntryComments = Readonly<Record<string, string>>

const STYLE = { lineWidth: 0 } as const

/** Returns the node of an entry. Each key has its own line with its value, except for `tools`. */
function entryNode(doc: Document, entry: object, comments: EntryComments): YAMLMap {
  const node = doc.createNode(entry) as YAMLMap
  for (const pair of node.items) {
    const key = pair.key as Node & { readonly value: string }
    const comment = comments[key.value]
    if (comment !== undefined) key.commentBefore = ` ${comment}`
    if (key.value === 'tools') for (const tool of (pair.value as YAMLMap).items) setFlow(tool.value)
    else setFlow(pair.value)
  }
  return node
}

function setFlow(value: unknown): void {
  if (isCollection(value)) value.flow = true
}

/** Returns the text with the entry after the last server, or `undefined` if there is no suitable position. */
function insertServer({ text, doc }: ConfigFile, name: string, entry: YAMLMap): string | undefined {
  const servers: unknown = doc.get('servers', true)
  if (!isMap(servers) || !servers.range) return undefined
  const [start, end] = servers.range
  if (servers.flow && servers.items.length > 0) return undefined
  const first = servers.items[0]?.key as Node | undefined
  const column = first?.range ? first.range[0] - (text.lastIndexOf('\n', first.range[0]) + 1) : 2
  const block = parseDocument('{}').createNode({ [name]: entry }) as YAMLMap
  const fresh = parseDocument('')
  fresh.contents = block as never
  const lines = fresh
    .toString(STYLE)
    .trimEnd()
    .replaceAll(/\[ (.*?) \]/g, '[$1]')
    .replace(/^(?=.)/gm, ' '.repeat(column))
  if (servers.flow) {
    const [rest = '', ...after] = text.slice(end).split('\n')
    return [`${text.slice(0, start).trimEnd()}${rest}`, lines, ...after].join('\n')
  }
  const before = text.slice(0, end).trimEnd()
  return `${before}\n\n${lines}\n${text.slice(before.length).replace(/^[^\S\n]*\n/, '')}`
}

/**
 * Returns the configuration as a gateway will read it. If it is to start, the commands of its secrets run.
 * @throws {ConfigFileError}
 */
export async function checkConfig(
  { file, text }: ConfigFile,
  env: Io['env'],
  { starts }: { readonly starts: boolean },
): Promise<GatewayConfig> {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}.tmp`)
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    const how = { env, packagesFrom: [INSTALLED_FROM] }
    const config = starts ? await readConfig(draft, how) : loadConfig(draft, how)
    return { ...config, file: path.resolve(file) }
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    throw new ConfigFileError(error.problems.map((problem) => ({ ...problem, file })))
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Replaces the file in one step, so that a reader never sees a part of it. A link to it stays a link. */
export function saveConfig({ file, text }: ConfigFile): void {
  try {
    rewriteFile(file, text)
  } catch (cause) {
    throw new CliError('no', `${printable(file)} cannot be written (${errnoOf(cause) ?? messageOf(cause)}).`, { cause })
  }
}
