import { CliError } from './exit.ts'
import { printable } from './io.ts'

/** A key that a command may use, and where it was found. */
export interface UsableKey {
  readonly key: string
  /** Such as `--key` or `toolgate.yaml:58`. */
  readonly from: string
  readonly user?: string | undefined
  readonly tenant?: string | undefined
}

/** Whether a request can carry a key: the gateway reads visible ASCII only (RFC 6750). */
export function isSendable(key: string): boolean {
  return /^[\x21-\x7e]+$/.test(key)
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ['\n', 'a line break'],
  ['\r', 'a line break'],
  ['\t', 'a tab'],
  [' ', 'a space'],
])

/**
 * Checks that a request can carry a key.
 *
 * @throws {CliError} `usage`, with the place of the character but without the key
 */
export function checkSendable({ key, from }: Pick<UsableKey, 'key' | 'from'>): void {
  const characters = Array.from(key)
  const at = characters.findIndex((one) => !isSendable(one))
  const found = characters[at]
  if (found === undefined) return
  const kind =
    NAMES.get(found) ?? ((found.codePointAt(0) ?? 0) < 0x80 ? 'a control character' : 'a non-ASCII character')
  throw new CliError(
    'usage',
    `The key in ${printable(from)} has ${kind} (character ${at + 1} of ${characters.length}).`,
    {
      hint: 'No HTTP header can hold it. A key has letters, digits and signs of ASCII only, without spaces.',
      code: 'key_unsendable',
    },
  )
}
