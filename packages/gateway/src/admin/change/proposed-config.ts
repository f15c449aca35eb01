import { ConfigError } from '@toolgate/core'
import { LineCounter, visit } from 'yaml'
import { checkTokens } from '../../config/check-tokens.ts'
import type { GatewayConfig } from '../../config/config.ts'
import { readText } from '../../config/load-config.ts'
import type { PolicySource } from '../../config/places.ts'
import { ConfigFileError } from '../../config/problems.ts'
import { parseYaml } from '../../config/source.ts'

/** Everything that a text takes from elsewhere: `${VAR}`, `${file:…}`, `${command:…}`. What has no end takes nothing. */
const TAKEN = /\$?\$\{[^}]*\}?/g

interface Taken {
  readonly whole: string
  /** Where its value begins. */
  readonly offset: number
}

/**
 * Checks a text that somebody proposes for a file: it may only take what the file takes already. Whoever sends a text could
 * else have the gateway read them any variable or file.
 *
 * @throws {ConfigFileError} with the place of everything else
 */
export function checkTaken(text: string, { file }: Pick<GatewayConfig, 'file'>): void {
  checkTokens(text, file)
  const taken = new Set(takenBy(readText(file)).map(({ whole }) => whole))
  const problems = takenBy(text).flatMap(({ whole, offset }) => {
    if (taken.has(whole)) return []
    const before = text.slice(0, offset).split('\n')
    const message = `found ${whole}, which the running file does not have; use "toolgate what-if" where the file is`
    return [{ file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1, path: '', message }]
  })
  if (problems.length > 0) throw new ConfigFileError(problems)
}

/** Reads values as they are filled: YAML may write each character of them in another way. */
function takenBy(text: string): readonly Taken[] {
  const found: Taken[] = []
  const document = parseYaml(text, new LineCounter(), () => {})
  if (document)
    visit(document, {
      Scalar(_key, { value, range }) {
        if (typeof value !== 'string') return
        for (const whole of value.match(TAKEN) ?? [])
          if (whole.endsWith('}') && !whole.startsWith('$$')) found.push({ whole, offset: range?.[0] ?? 0 })
      },
    })
  return found
}

/**
 * Returns the text of a file with another section `policy`, whose lines begin where those of the one in force do.
 *
 * @throws {ConfigError} if the file no longer has the section that is in force
 */
export function withPolicy(
  policy: string,
  { file }: Pick<GatewayConfig, 'file'>,
  inForce: PolicySource | undefined,
): string {
  if (!inForce) throw new ConfigError('policy', `is not in ${file}, so that nothing can take its place`)
  const lines = readText(file).split('\n')
  const [start, count] = [inForce.line - 1, inForce.text.split('\n').length]
  if (lines.slice(start, start + count).join('\n') !== inForce.text)
    throw new ConfigError('policy', `is not in ${file} as it is in force; reload the file first`)
  return [...lines.slice(0, start), policy, ...lines.slice(start + count)].join('\n')
}
