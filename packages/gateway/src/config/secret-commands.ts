import { hash, randomBytes } from 'node:crypto'
import path from 'node:path'
import { runBounded } from '../util/bounded-command.ts'
import { createReaper } from '../util/reaper.ts'
import type { GatewayConfig, SecretCommandsConfig } from './config.ts'
import { MAX_SECRET_BYTES, type SecretAnswer, toSecret } from './fill.ts'

/** Returns the output of a command, given as it is written in the file. */
export type OutputOf = (command: string) => SecretAnswer

const MAX_COMMANDS = 64
const MAX_AT_ONCE = 4
const DEFAULT_TIMEOUT_MS = 10_000

/** A word, and the spaces up to the next word. Quotes enclose whole words, and there are no escapes. */
const WORD = /([\w@%+=:,./^-]+|'[^'\n]*'|"[^"\n]*")( +|$)/y

type Argv = readonly [string, ...string[]]

/**
 * Returns the program and the arguments of a command.
 *
 * There is no shell. Spaces separate words. A word with characters other than letters, digits and `_@%+=:,./^-` needs
 * single or double quotes, within which every character stands for itself.
 */
export function parseCommand(text: string): { readonly argv: Argv } | { readonly problem: string } {
  const words: string[] = []
  let at = 0
  while (at < text.length) {
    WORD.lastIndex = at
    const [all, word = ''] = WORD.exec(text) ?? []
    if (all === undefined)
      return {
        problem: `cannot be read at ${JSON.stringify(text.slice(at, at + 20))}: put each word with such characters in quotes, as there is no shell`,
      }
    words.push(/^['"]/.test(word) ? word.slice(1, -1) : word)
    at += all.length
  }
  const [program = '', ...args] = words
  return program === '' ? { problem: 'has no program' } : { argv: [program, ...args] }
}

/** The commands that a file names, before they run. */
export class SecretCommands {
  readonly #argvs = new Map<string, Argv>()
  /** A random placeholder, so that nobody can use it as a key. */
  readonly #standIn = randomBytes(32).toString('hex')

  get isEmpty(): boolean {
    return this.#argvs.size === 0
  }

  /** Returns the id of each command, which also depends on how it runs. */
  idsWith(how: SecretCommandsConfig): readonly string[] {
    return [...this.#argvs.keys()].map((text) => hash('sha256', JSON.stringify([text, how])))
  }

  /** Returns a configuration whose commands did not run: without the keys that are placeholders. */
  withoutThem(config: GatewayConfig): GatewayConfig {
    const callers = config.callers.map(({ demoKey, ...rest }) =>
      demoKey === undefined || demoKey.includes(this.#standIn) ? rest : { ...rest, demoKey },
    )
    return { ...config, callers, notRun: [...this.#argvs.keys()].map(nameOf) }
  }

  /** Collects a command, and returns a placeholder for its output. */
  readonly collect: OutputOf = (text) => {
    const parsed = parseCommand(text)
    if ('problem' in parsed) return { problem: `the command ${parsed.problem}` }
    this.#argvs.set(text, parsed.argv)
    if (this.#argvs.size > MAX_COMMANDS) return { problem: `found more than ${MAX_COMMANDS} commands` }
    return { value: this.#standIn, isStandIn: true }
  }

  /**
   * Runs each command once, and returns the outputs. Never rejects: a failed command is reported as a problem at its
   * place in the file.
   */
  async run({ env, timeoutMs = DEFAULT_TIMEOUT_MS }: SecretCommandsConfig, cwd: string): Promise<OutputOf> {
    const answers = new Map<string, SecretAnswer>()
    const waiting = [...this.#argvs]
    const reaper = createReaper()
    reaper.start()
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [text, argv] = next
        const bounds = {
          maxBytes: MAX_SECRET_BYTES,
          keepBytes: MAX_SECRET_BYTES,
          signal: AbortSignal.timeout(timeoutMs),
        }
        const { problem, output } = await runBounded({ argv, env, cwd, reads: 'stdout', ...bounds, reaper })
        answers.set(text, problem === undefined ? toSecret(output) : { problem })
      }
    }
    try {
      await Promise.all(Array.from({ length: MAX_AT_ONCE }, work))
    } finally {
      await reaper.close()
    }
    return (text) => {
      const answer = answers.get(text) ?? { problem: 'was not run: a file or a variable changed meanwhile' }
      return answer.problem === undefined
        ? answer
        : { problem: `the command ${nameOf(text)} ${answer.problem}`, isAbsent: true }
    }
  }
}

/** Returns the program's name only, as its arguments may contain a secret. */
function nameOf(text: string): string {
  const parsed = parseCommand(text)
  return 'argv' in parsed ? path.basename(parsed.argv[0]) : ''
}
