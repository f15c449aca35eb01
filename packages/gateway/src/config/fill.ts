import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/core/internal'

/** How to fill the `${…}` of one text. */
export interface FillContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute folder of the configuration file, for `${configDir}`. */
  readonly configDir: string
  /** The names that stay as they are: those that are filled at each start of a server. */
  readonly keeps: ReadonlySet<string>
  /** Escapes the values, because they are inserted into a CEL string. */
  readonly inCondition: boolean
  /** Called with the value of each variable of the environment, which may be a secret. */
  readonly onFilled?: (name: string, value: string) => void
}

export interface Filled {
  readonly text: string
  /** Whether anything was replaced, so that offsets in `text` differ from those in the source. */
  readonly changed: boolean
  readonly problems: readonly { readonly offset: number; readonly message: string }[]
}

const PLACEHOLDER = /\$?\$\{([^}]*)(\}?)/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills `${VAR}` and `${VAR:-default}` from the environment, `${file:/run/secrets/x}` from a file, and `${configDir}`.
 *
 * A blank variable counts as unset, unless `${VAR:-}` allows it. `$${` is an escaped `${`.
 * Filled-in values are not filled again.
 */
export function fillText(text: string, context: FillContext): Filled {
  if (!text.includes('${')) return { text, changed: false, problems: [] }
  const problems: { offset: number; message: string }[] = []
  const filled = text.replace(PLACEHOLDER, (whole, inner: string, close: string, offset: number) => {
    const answer = whole.startsWith('$$') ? escaped(whole, inner, context) : resolve(whole, inner, close, context)
    if ('text' in answer) return answer.text
    problems.push({ offset, message: answer.problem })
    return whole
  })
  return { text: filled, changed: filled !== text, problems }
}

/** The names that are known only when a server starts. */
const LATER: ReadonlyMap<string, string> = new Map([
  ['port', 'is known only to a server'],
  ['user', 'is known only in the args, env, cwd and headers of a server'],
  ['tenant', 'is known only in the args, env, cwd and headers of a server'],
])

type Filling = { readonly text: string } | { readonly problem: string }

function resolve(whole: string, inner: string, close: string, context: FillContext): Filling {
  if (close && inner.startsWith(FILE)) return fillFromFile(inner, context)
  const [, name, fallback] = (close && REFERENCE.exec(inner)) || []
  if (name === undefined) return { problem: `found ${whole}, expected \${VAR}, \${VAR:-default} or \${file:<path>}` }
  const unknown = LATER.get(name)
  if (unknown !== undefined && fallback === undefined)
    return context.keeps.has(name) ? { text: whole } : { problem: `found ${whole}, which ${unknown}` }
  const set = own(context.env, name)
  if (name !== 'configDir' && set) context.onFilled?.(name, set)
  const value = name === 'configDir' ? context.configDir : set || fallback
  if (value === undefined)
    return { problem: `the environment variable ${name} is not set; set it or write \${${name}:-default}` }
  return { text: context.inCondition ? escapeCel(value) : value }
}

const FILE = 'file:'
const MAX_SECRET_BYTES = 64 * 1024

/** Reads a secret from a file, without the line feed at its end. A problem names the file, and nothing of what is in it. */
function fillFromFile(inner: string, context: FillContext): Filling {
  const file = path.resolve(context.configDir, inner.slice(FILE.length))
  const answer = readSecret(file)
  if (answer.problem !== undefined) return { problem: `the secret file ${file} ${answer.problem}` }
  const { value } = answer
  context.onFilled?.(inner, value)
  return { text: context.inCondition ? escapeCel(value) : value }
}

function readSecret(
  file: string,
): { readonly value: string; readonly problem?: undefined } | { readonly problem: string } {
  try {
    const stats = statSync(file)
    // A pipe could be waited for, for ever.
    if (!stats.isFile()) return { problem: 'is not a file' }
    if (stats.size > MAX_SECRET_BYTES) return { problem: `has more than ${MAX_SECRET_BYTES} bytes` }
    const value = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)).replace(/\r?\n$/, '')
    if (value.trim() === '') return { problem: 'is empty' }
    return { value }
  } catch (error) {
    const code = errnoOf(error)
    if (error instanceof TypeError) return { problem: 'is not text' }
    if (code === 'ENOENT') return { problem: 'cannot be read: there is no such file' }
    return { problem: `cannot be read (${code ?? 'unknown'})` }
  }
}

function escaped(whole: string, inner: string, context: FillContext): Filling {
  if (context.keeps.has(inner)) return { problem: `found ${whole}, which a server cannot escape` }
  return { text: whole.slice(1) }
}

/** The file names the variables, so `constructor` must not find an inherited property. */
function own(env: FillContext['env'], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined
}

function escapeCel(value: string): string {
  return value.replace(/[\\'"\n\r]/g, (char) => (char === '\n' ? '\\n' : char === '\r' ? '\\r' : `\\${char}`))
}
