import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@toolgate/core/internal'
import { parseObject } from '../json.ts'

/** A key in plain text. The configuration has its hash only. */
export interface PlainKey {
  readonly user: string
  readonly for: 'mcp' | 'console'
  readonly key: string
}

/** Where `toolgate init` puts the keys, beside a configuration. Only its owner can read it, and git ignores it. */
export function keysPath(config: string): string {
  return path.join(path.dirname(path.resolve(config)), '.toolgate', 'keys.json')
}

/** Returns the keys beside a configuration; none if there is no such file or it is not usable. */
export function readKeys(config: string): readonly PlainKey[] {
  const file = keysPath(config)
  if (!existsSync(file)) return []
  const keys = parseObject(readFileSync(file, 'utf8'))?.['keys']
  return Array.isArray(keys) ? keys.filter(isPlainKey) : []
}

export function writeKeys(config: string, keys: readonly PlainKey[]): void {
  const file = keysPath(config)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(path.join(path.dirname(file), '.gitignore'), '*\n')
  writeFileSync(file, `${JSON.stringify({ keys }, undefined, 2)}\n`, { mode: 0o600 })
}

function isPlainKey(value: unknown): value is PlainKey {
  return isObject(value) && typeof value['user'] === 'string' && typeof value['key'] === 'string'
}
