import { readFileSync } from 'node:fs'
import type { GatewayConfig } from '../config/config.ts'
import { ConfigFileError } from '../config/problems.ts'

/** Everything that a file takes from elsewhere: `${VAR}`, `${file:…}`, `${command:…}`. */
const TAKEN = /\$\{[^}]*\}/g

/**
 * Checks a text that somebody proposes for a file: it may only take what the file takes already. Whoever sends a text could
 * else have the gateway read them any variable or file.
 *
 * @throws {ConfigFileError} with the place of everything else
 */
export function checkTaken(text: string, { file }: Pick<GatewayConfig, 'file'>): void {
  const taken = new Set(readFileSync(file, 'utf8').match(TAKEN) ?? [])
  const problems = [...text.matchAll(TAKEN)].flatMap(({ 0: whole, index }) => {
    if (taken.has(whole)) return []
    const before = text.slice(0, index).split('\n')
    const message = `found ${whole}, which the running file does not have; use "toolgate what-if" where the file is`
    return [{ file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1, path: '', message }]
  })
  if (problems.length > 0) throw new ConfigFileError(problems)
}
