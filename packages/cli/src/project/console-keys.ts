import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { ConfigFileError, type GatewayConfig, loadConfig } from '@toolgate/gateway'
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { listenUrlOf } from '../address.ts'
import { CliError } from '../exit.ts'
import { type Io, printable } from '../io.ts'
import type { UsableKey } from '../usable-key.ts'
import { listenUrl } from './callers.ts'
import { keysPath, readKeys } from './keys-file.ts'
import { readRunning } from './running-file.ts'

/** The console keys that a configuration and the file beside it have. */
export interface ConsoleKeys {
  /** The keys in plain text: those of `.toolgate/keys.json`, the newest first, then those of the configuration. */
  readonly keys: readonly UsableKey[]
  /** The number of console keys, including those of which only the hash is known. */
  readonly count: number
  /** The address in the configuration, unless the port is chosen at the start. */
  readonly url: string | undefined
  /** The addresses of the gateway that the configuration names: where it listens, and `publicUrl`. */
  readonly addresses: readonly string[]
  /** Returns the person of a key, if the configuration has it. */
  whose(key: string): Pick<UsableKey, 'user' | 'tenant'> | undefined
}

/**
 * Reads the console keys. A configuration with mistakes still has its plain keys, because a halt and a reload must work
 * before somebody has mended it.
 *
 * @throws {CliError} `usage` for a file that cannot be read
 */
export function readConsoleKeys(file: string, env: Io['env']): ConsoleKeys {
  const text = readText(file)
  const lines = new LineCounter()
  const doc = parseDocument(text, { lineCounter: lines })
  const config = load(file, text, env)
  const persons = config ? personsOf(config) : looseOf(doc)
  const plain = persons.flatMap(({ index, key, user, tenant }) =>
    key === undefined ? [] : [{ key, user, tenant, from: `${file}:${lineOf(doc, lines, index)}` }],
  )
  const byHash = new Map(persons.map((person) => [person.hash, person]))
  const whose = (key: string) => {
    const person = byHash.get(hashOf(key))
    return person && { user: person.user, tenant: person.tenant }
  }
  const beside = readKeys(file)
    .filter((key) => key.for === 'console')
    .map(({ key, user }) => ({ user, ...whose(key), key, from: shown(keysPath(file)) }))
  const first = readRunning(file)?.consoleHash
  // A key that was added above the others does not change who the command is.
  const inOrder = plain.toSorted((a, b) => Number(hashOf(b.key) === first) - Number(hashOf(a.key) === first))
  const hashes = new Set([...byHash.keys(), ...beside.map(({ key }) => hashOf(key))])
  const url = config ? listenUrlOf(config.listen) : doc.errors.length > 0 ? undefined : listenUrl({ doc })
  const publicUrl = config ? config.publicUrl : textOf(rootOf(doc)['publicUrl'])
  return {
    keys: [...beside, ...inOrder],
    count: hashes.size,
    url: url?.endsWith(':0') ? undefined : url,
    addresses: [url, publicUrl].filter((one) => one !== undefined),
    whose,
  }
}

/** Returns the hash of the first console key that a configuration has in plain text. */
export function firstConsoleHash({ callers }: Pick<GatewayConfig, 'callers'>): string | undefined {
  const first = callers.find((caller) => caller.for === 'console' && caller.demoKey !== undefined)
  return first && Buffer.from(first.keyHash).toString('hex')
}

interface FilePerson {
  readonly index: number
  readonly hash: string
  readonly key: string | undefined
  readonly user: string | undefined
  readonly tenant: string | undefined
}

function load(file: string, text: string, env: Io['env']): GatewayConfig | undefined {
  try {
    return loadConfig(file, { env, text })
  } catch (error) {
    if (error instanceof ConfigFileError) return undefined
    throw error
  }
}

function personsOf({ callers }: GatewayConfig): readonly FilePerson[] {
  return callers.flatMap(({ for: use, keyHash, demoKey, caller }, index) => {
    const hash = Buffer.from(keyHash).toString('hex')
    return use === 'console' ? [{ index, hash, key: demoKey, user: caller.user, tenant: caller.tenant }] : []
  })
}

/** Returns the persons of a file that has mistakes. Keys with variables are left out. */
function looseOf(doc: Document): readonly FilePerson[] {
  const { callers: rows } = rootOf(doc)
  const callers = Array.isArray(rows) ? (rows as readonly unknown[]) : []
  return callers.flatMap((one, index) => {
    if (!isObject(one) || one['for'] !== 'console') return []
    const [key, keyHash] = [textOf(one['key']), textOf(one['keyHash'])]
    const plain = key?.includes('${') ? undefined : key
    const hash = plain === undefined ? (keyHash ?? String(index)).replace(/^sha256:/, '') : hashOf(plain)
    return [{ index, hash, key: plain, user: textOf(one['user']), tenant: textOf(one['tenant']) }]
  })
}

function rootOf(doc: Document): JsonObject {
  const root: unknown = doc.errors.length > 0 ? undefined : doc.toJS()
  return isObject(root) ? root : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns the line of the key of a caller, or of the caller. */
function lineOf(doc: Document, lines: LineCounter, index: number): number {
  const callers: unknown = doc.get('callers', true)
  const entry: unknown = isSeq(callers) ? callers.items[index] : undefined
  const pair = isMap(entry) ? entry.items.find(({ key }) => isScalar(key) && key.value === 'key') : undefined
  const node = pair && isScalar(pair.key) ? pair.key : isMap(entry) ? entry : undefined
  return lines.linePos(node?.range?.[0] ?? 0).line
}

function hashOf(key: string): string {
  return createHash('sha256').update(key, 'utf8').digest('hex')
}

/** Returns a path as seen from the current folder, if it is below it. */
function shown(file: string): string {
  const relative = path.relative('', file)
  return relative.startsWith('..') ? file : relative
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new CliError('usage', `${printable(file)} cannot be read (${errnoOf(cause)}).`, { cause })
  }
}
