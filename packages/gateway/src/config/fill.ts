import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/values'

/** How to fill the `${…}` of one text. */
export interface FillContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute folder of the configuration file, for `${configDir}`. */
  readonly configDir: string
  /** The names that stay unfilled. They are filled at each start of a server. */
  readonly keeps: ReadonlySet<string>
  /** Whether to escape values for a CEL string. */
  readonly inCondition: boolean
  /** Called with the value of each environment variable, which may be a secret. */
  readonly onFilled?: (name: string, value: string) => void
  /** Returns the output of a command, given as written. Absent: commands are not allowed here. */
  readonly outputOf?: (command: string) => SecretAnswer
}

export type SecretAnswer =
  | { readonly value: string; readonly problem?: undefined; /** Set for a placeholder. */ readonly isStandIn?: true }
  | {
      readonly problem: string
      /** Set if the file is right, and the machine lacks the value now. */ readonly isAbsent?: true
    }

export interface Filled {
  readonly text: string
  /** Whether anything was replaced, so that offsets in `text` differ from those in the source. */
  readonly changed: boolean
  /** Whether the text contains a placeholder for a command's output, so that checks of the text are meaningless. */
  readonly isUnread: boolean
  readonly problems: readonly FillProblem[]
}

interface FillProblem {
  readonly offset: number
  readonly message: string
  /** Set if the file is right, and the machine lacks the value now: a variable, a file, or the output of a command. */
  readonly isAbsent?: true
}

const PLACEHOLDER = /\$?\$\{([^}]*)(\}?)/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills `${VAR}` and `${VAR:-default}` from the environment, `${file:/run/secrets/x}` from a file,
 * `${command:op read x}` from the output of a command, and `${configDir}`.
 *
 * A blank variable counts as unset, unless `${VAR:-}` allows it. `$${` is an escaped `${`. Filled-in values are not
 * filled again.
 */
export function fillText(text: string, context: FillContext): Filled {
  if (!text.includes('${')) return { text, changed: false, isUnread: false, problems: [] }
  const problems: FillProblem[] = []
  let isUnread = false
  const filled = text.replace(PLACEHOLDER, (whole, inner: string, close: string, offset: number) => {
    const answer = whole.startsWith('$$') ? escaped(whole, inner, context) : resolve(whole, inner, close, context)
    if ('text' in answer) {
      isUnread ||= answer.isStandIn === true
      return answer.text
    }
    problems.push({ offset, message: answer.problem, ...(answer.isAbsent && { isAbsent: true }) })
    return whole
  })
  return { text: filled, changed: filled !== text, isUnread, problems }
}

/** The names that are known only when a server starts. */
const LATER: ReadonlyMap<string, string> = new Map([
  ['port', 'is known only to a server'],
  ['user', 'is known only in the args, env, cwd and headers of a server'],
  ['tenant', 'is known only in the args, env, cwd and headers of a server'],
])

type Filling = { readonly text: string; readonly isStandIn?: true | undefined } | Unfilled
interface Unfilled {
  readonly problem: string
  readonly isAbsent?: true
}

function resolve(whole: string, inner: string, close: string, context: FillContext): Filling {
  if (close && inner.startsWith(FILE)) return fillSecret(inner, readSecret(inner.slice(FILE.length), context), context)
  if (close && inner.startsWith(COMMAND)) {
    const answer = context.outputOf?.(inner.slice(COMMAND.length)) ?? {
      problem: `found ${whole}, where no command can be`,
    }
    return fillSecret(inner, answer, context)
  }
  const [, name, fallback] = (close && REFERENCE.exec(inner)) || []
  if (name === undefined)
    return {
      problem: `found ${whole}, expected \${VAR}, \${VAR:-default}, \${file:<path>} or \${command:<program> <args>}`,
    }
  const unknown = LATER.get(name)
  if (unknown !== undefined && fallback === undefined)
    return context.keeps.has(name) ? { text: whole } : { problem: `found ${whole}, which ${unknown}` }
  const set = own(context.env, name)
  if (name !== 'configDir' && set) context.onFilled?.(name, set)
  const value = name === 'configDir' ? context.configDir : set || fallback
  if (value === undefined)
    return {
      problem: `the environment variable ${name} is not set; set it or write \${${name}:-default}`,
      isAbsent: true,
    }
  return { text: context.inCondition ? escapeCel(value) : value }
}

const FILE = 'file:'
const COMMAND = 'command:'
export const MAX_SECRET_BYTES = 64 * 1024

function fillSecret(inner: string, answer: SecretAnswer, context: FillContext): Filling {
  if (answer.problem !== undefined) return answer
  const { value, isStandIn } = answer
  context.onFilled?.(inner, value)
  return { text: context.inCondition ? escapeCel(value) : value, isStandIn }
}

/** Reads a secret from a file. A problem names the file but never quotes its content. */
function readSecret(name: string, { configDir }: FillContext): SecretAnswer {
  const file = path.resolve(configDir, name)
  const answer = readFile(file)
  return answer.problem === undefined
    ? answer
    : { problem: `the secret file ${file} ${answer.problem}`, isAbsent: true }
}

function readFile(file: string): SecretAnswer {
  try {
    const stats = statSync(file)
    // Reading a pipe could block forever.
    if (!stats.isFile()) return { problem: 'is not a file' }
    if (stats.size > MAX_SECRET_BYTES) return { problem: `has more than ${MAX_SECRET_BYTES} bytes` }
    return toSecret(readFileSync(file))
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOENT') return { problem: 'cannot be read: there is no such file' }
    return { problem: `cannot be read (${code ?? 'unknown'})` }
  }
}

/** Returns bytes as a text without the line feed at its end. */
export function toSecret(bytes: Uint8Array): SecretAnswer {
  try {
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
    return value.trim() === '' ? { problem: 'is empty' } : { value }
  } catch {
    return { problem: 'is not text' }
  }
}

function escaped(whole: string, inner: string, context: FillContext): Filling {
  if (context.keeps.has(inner)) return { problem: `found ${whole}, which a server cannot escape` }
  return { text: whole.slice(1) }
}

/** The file chooses the names, so `constructor` must not find an inherited property. */
function own(env: FillContext['env'], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined
}

function escapeCel(value: string): string {
  return value.replace(/[\\'"\n\r]/g, (char) => (char === '\n' ? '\\n' : char === '\r' ? '\\r' : `\\${char}`))
}
