import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@toolgate/values/json'
import { parseObject } from '../json.ts'
import { writeOwn } from './own-file.ts'

/** A key in plain text. The configuration has only its hash. */
export interface PlainKey {
  readonly user: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly key: string
  /** The id of a key that `toolgate keys create --save` created. */
  readonly id?: string
  readonly expiresAt?: number
}

/**
 * Returns the path of the keys that `toolgate init` writes beside a configuration. Only the owner can read the file,
 * and git ignores it.
 */
export function keysPath(config: string): string {
  return path.join(path.dirname(path.resolve(config)), '.toolgate', 'keys.json')
}

/** Returns the unexpired keys beside a configuration, the newest first, or none if the file is missing or unusable. */
export function readKeys(config: string): readonly PlainKey[] {
  const file = keysPath(config)
  if (!existsSync(file)) return []
  const keys = parseObject(readFileSync(file, 'utf8'))?.['keys']
  return Array.isArray(keys) ? keys.filter(isPlainKey).filter(({ expiresAt = Infinity }) => expiresAt > Date.now()) : []
}

export function writeKeys(config: string, keys: readonly PlainKey[]): void {
  writeOwn(keysPath(config), `${JSON.stringify({ keys }, undefined, 2)}\n`)
}

/** Puts a key first, so that commands use it from now on. The other keys stay, because a client may use one of them. */
export function saveKey(config: string, key: PlainKey): void {
  writeKeys(config, [key, ...readKeys(config).filter(({ id }) => id === undefined || id !== key.id)])
}

/** Removes a created key. Returns whether it existed. */
export function forgetKey(config: string, id: string): boolean {
  const keys = readKeys(config)
  const others = keys.filter((one) => one.id !== id)
  if (others.length === keys.length) return false
  writeKeys(config, others)
  return true
}

function isPlainKey(value: unknown): value is PlainKey {
  return isObject(value) && typeof value['user'] === 'string' && typeof value['key'] === 'string'
}
