import type { Command, Option } from 'commander'
import { CliError } from './exit.ts'
import { printable } from './io.ts'

type Flag = `--${string}`

/**
 * A rule about options:
 *
 * - `['--tap', 'not with', '--junit', '--json']`
 * - `['--app', 'needs', '--as', '--caller']`: one of these
 * - `['--since', 'before', '--until']`: its value is smaller
 * - `['needs', '--policy']`: the command needs one of these
 */
export type OptionRule =
  | readonly [flag: Flag, rule: 'needs' | 'not with' | 'before', ...others: readonly [Flag, ...Flag[]]]
  | readonly [rule: 'needs', ...flags: readonly [Flag, ...Flag[]]]

/** Checks the options that a command was given. @throws {CliError} `usage`, which names the options */
export function checkOptions(command: Command, rules: readonly OptionRule[]): void {
  const options = optionsOf(command)
  const given = new Map(options.filter(({ isGiven }) => isGiven).map(({ flag, value }) => [flag, value]))
  for (const [flag, value] of given) checkValue(flag, value, options)
  for (const rule of rules) {
    const problem = rule[0] === 'needs' ? findMissing(command, rule, given) : findConflict(rule, given)
    if (problem !== undefined) throw new CliError('usage', problem)
  }
}

interface OptionState {
  readonly flag: string
  readonly option: Option
  readonly value: unknown
  /** Whether the user gave the option. A default excludes nothing. */
  readonly isGiven: boolean
}

/** Returns the options of a command and of those above it. */
function optionsOf(command: Command): readonly OptionState[] {
  const own = command.options.map((option) => {
    const name = option.attributeName()
    const isGiven = command.getOptionValueSource(name) === 'cli'
    return { flag: option.long ?? option.flags, option, value: command.getOptionValue(name) as unknown, isGiven }
  })
  return command.parent ? [...own, ...optionsOf(command.parent)] : own
}

/**
 * Checks that a value is not missing. An unset shell variable leaves an empty value, and after a forgotten value the
 * next option becomes the value.
 */
function checkValue(flag: string, value: unknown, options: readonly OptionState[]): void {
  for (const text of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
    if (text === '') throw new CliError('usage', `${flag} is empty.`)
    if (typeof text === 'string' && options.some(({ option }) => [option.long, option.short].includes(text)))
      throw new CliError('usage', `${flag} has no value: the next word is the option ${printable(text)}.`)
  }
}

type Given = ReadonlyMap<string, unknown>

function findMissing(command: Command, [, ...flags]: readonly string[], given: Given): string | undefined {
  if (flags.some((flag) => given.has(flag))) return undefined
  const options = optionsOf(command)
  const words = flags.map((flag) => options.find((one) => one.flag === flag)?.option.flags ?? flag)
  return `${wordsOf(command)} needs ${oneOf(words)}.`
}

/** Returns the words of a command without the program's name: `keys create`. */
function wordsOf(command: Command): string {
  return command.parent?.parent ? `${wordsOf(command.parent)} ${command.name()}` : command.name()
}

function findConflict([flag, rule, ...others]: readonly string[], given: Given): string | undefined {
  if (flag === undefined || !given.has(flag)) return undefined
  const other = others.find((one) => given.has(one))
  if (rule === 'needs') return other === undefined ? `${flag} needs ${oneOf(others)}.` : undefined
  if (other === undefined) return undefined
  if (rule === 'not with') return `Give ${flag} or ${other}, not both.`
  return Number(given.get(flag)) < Number(given.get(other)) ? undefined : `${flag} must be before ${other}.`
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
