import { LineCounter, visit } from 'yaml'
import { checkTokens } from '../../config/check-tokens.ts'
import type { GatewayConfig } from '../../config/config.ts'
import { readText } from '../../config/load-config.ts'
import { type PolicySource, replaceSection } from '../../config/places.ts'
import { ConfigFileError } from '../../config/problems.ts'
import { parseYaml } from '../../config/source.ts'

/** The references in a text: `${VAR}`, `${file:…}`, `${command:…}`. A reference without an end is ignored. */
const TAKEN = /\$?\$\{[^}]*\}?/g

interface Taken {
  readonly whole: string
  /** The offset at which its value begins. */
  readonly offset: number
}

/**
 * Checks that a proposed text has only references that the current file has. Otherwise its author could make the
 * gateway read any variable or file.
 *
 * @throws {ConfigFileError} with the place of every other reference
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

/** Returns the references in the parsed values, since YAML may write each character in another way. */
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
 * Returns the text of a file with another `policy` section, which begins at the same line as the current one.
 *
 * @throws {ConfigError} if the file no longer has the current section
 */
export function withPolicy(
  policy: string,
  { file }: Pick<GatewayConfig, 'file'>,
  inForce: PolicySource | undefined,
): string {
  return replaceSection(readText(file), inForce, policy)
}
