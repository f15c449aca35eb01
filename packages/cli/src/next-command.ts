import path from 'node:path'
import { printable } from './io.ts'

/** The options that a printed command repeats. */
interface RepeatedOptions {
  readonly config?: string | undefined
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly file?: string | undefined
  readonly tenant?: string | undefined
  readonly app?: string | undefined
}

const DEFAULTS: ReadonlyMap<string, string> = new Map([['config', 'toolgate.yaml']])
/** A key would stay in the history of the shell. */
const REPEATED = ['config', 'url', 'file', 'tenant', 'app'] as const

/**
 * Returns a command to run next, with the options that this command was given, so that it asks the same gateway.
 *
 * `words` must be safe on a terminal. A key of `--key` is not printed; the command names TOOLGATE_KEY instead.
 *
 * @example
 * nextCommand('release --id 3f2a', { url: 'http://127.0.0.1:9000' })  // toolgate release --id 3f2a --url http://…
 */
export function nextCommand(words: string, given: RepeatedOptions = {}): string {
  const options = REPEATED.flatMap((name) => {
    const value = name === 'config' ? nearPath(given[name]) : given[name]
    return value === undefined || value === DEFAULTS.get(name) ? [] : [`--${name} ${quoted(value)}`]
  })
  const key = given.key === undefined ? [] : ['TOOLGATE_KEY=…']
  return [...key, 'toolgate', words, ...options].join(' ')
}

/** Returns a path below the current folder without that folder. */
function nearPath(file: string | undefined): string | undefined {
  const relative = file === undefined ? '' : path.relative('', file)
  return relative === '' || relative.startsWith('..') ? file : relative
}

/** Returns the options that name the gateway, for a command that takes these only. */
export function gatewayOf({ config, url, key }: RepeatedOptions): RepeatedOptions {
  return { config, url, key }
}

/** Returns a text as one word of a POSIX shell. */
export function quoted(text: string): string {
  const shown = printable(text)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}
