import { globSync, statSync } from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'

/** Where Debian puts servers, and Go itself, beside `PATH`. The newest Postgres comes first. */
const FOLDERS = [
  ...(process.env['PATH'] ?? '').split(path.delimiter),
  '/usr/sbin',
  '/usr/local/sbin',
  '/usr/local/go/bin',
  ...globSync('/usr/lib/postgresql/*/bin').toSorted().toReversed(),
]

/** Returns the path of a program, or `undefined` where this machine has none. */
export function binary(name: string): string | undefined {
  return FOLDERS.map((folder) => path.join(folder, name)).find(isProgram)
}

/**
 * Declares tests that need programs. A machine without one leaves them out with a printed line; CI fails.
 *
 * @example
 * withBinaries(['nginx', 'openssl'], ({ nginx, openssl }) => {
 *   describe('behind nginx', () => { … })
 * })
 */
export function withBinaries<const Name extends string>(
  names: readonly Name[],
  declare: (paths: Readonly<Record<Name, string>>) => void,
): void {
  const found = names.map((name) => [name, binary(name)] as const)
  const missing = found.filter(([, place]) => place === undefined).map(([name]) => name)
  if (missing.length === 0) return declare(Object.fromEntries(found) as Record<Name, string>)
  const file = path.basename(process.argv.find((arg) => arg.endsWith('.test.ts')) ?? 'tests')
  const message = `not on this machine: ${missing.join(', ')}`
  if (process.env['CI'] === 'true') {
    it(`has the programs ${names.join(', ')}`, () => {
      throw new Error(message)
    })
  } else console.warn(`${file}: tests left out, ${message}`)
}

function isProgram(place: string): boolean {
  const stat = statSync(place, { throwIfNoEntry: false })
  return stat !== undefined && stat.isFile() && (stat.mode & 0o111) !== 0
}
