import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@toolgate/values/json'
import { parseObject } from '../json.ts'
import { writeOwn } from './own-file.ts'

/** A key in plain text. The configuration has its hash only. */
export interface PlainKey {
  readonly user: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly key: string
  /** Of a key that `toolgate keys create --save` made. */
  readonly id?: string
  readonly expiresAt?: number
}

/** Where `toolgate init` puts the keys, beside a configuration. Only its owner can read it, and git ignores it. */
export function keysPath(config: string): string {
  return path.join(path.dirname(path.resolve(config)), '.toolgate', 'keys.json')
}

/**
 * Returns the keys beside a configuration that have not expired, those made last first; none if there is no such file or
 * it is not usable.
 */
export function readKeys(config: string): readonly PlainKey[] {
  const file = keysPath(config)
  if (!existsSync(file)) return []
  const keys = parseObject(readFileSync(file, 'utf8'))?.['keys']
  return Array.isArray(keys) ? keys.filter(isPlainKey).filter(({ expiresAt = Infinity }) => expiresAt > Date.now()) : []
}

export function writeKeys(config: string, keys: readonly PlainKey[]): void {
  writeOwn(keysPath(config), `${JSON.stringify({ keys }, undefined, 2)}\n`)
}

/** Puts a key before the others: commands use it from now on. The others stay, as a client may have one of them. */
export function saveKey(config: string, key: PlainKey): void {
  writeKeys(config, [key, ...readKeys(config).filter(({ id }) => id === undefined || id !== key.id)])
}

/** Removes a key that was made. Returns whether it was there. */
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
