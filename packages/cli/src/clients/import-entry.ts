import path from 'node:path'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { createRedactor } from '@toolgate/values/redact'

/** A server of a client's file as an entry of the configuration. */
export interface ImportedServer {
  readonly entry: JsonObject
  /** The variables that replace secrets, with the earlier place of each. */
  readonly secrets: readonly { readonly variable: string; readonly from: string }[]
  /** Variables of the environment that the client's file already uses. */
  readonly variables: readonly string[]
}

type ImportResult = ImportedServer | { readonly left: string }

/**
 * Returns a client's server as an entry of the configuration. Secrets become references to the environment; no result
 * contains their values. A server that the gateway cannot run is left out, with the reason.
 */
export function importEntry(name: string, given: unknown): ImportResult {
  if (!isObject(given)) return { left: 'it is not an object' }
  if (given['disabled'] === true || given['enabled'] === false) return { left: 'it is switched off' }
  const type = given['type'] ?? given['transport']
  if (type === 'sse') return { left: 'it speaks HTTP+SSE, which the gateway does not' }
  const reading = new EntryReading(name)
  try {
    const entry =
      textOf(given['url'] ?? given['serverUrl']) === undefined ? commandOf(given, reading) : urlOf(given, reading)
    return entry === undefined
      ? { left: 'it has neither a command nor a URL' }
      : { entry, secrets: reading.secrets, variables: [...reading.variables] }
  } catch (error) {
    if (error instanceof NotPortable) return { left: error.message }
    throw error
  }
}

function urlOf(given: JsonObject, reading: EntryReading): JsonObject {
  const url = textOf(given['url'] ?? given['serverUrl']) ?? ''
  const headers = Object.entries(textsOf(given['headers'])).map(([header, value]) => [
    header,
    reading.header(header, value),
  ])
  return {
    url: reading.value(url, 'URL', 'url'),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
  }
}

function commandOf(given: JsonObject, reading: EntryReading): JsonObject | undefined {
  // Earlier versions of Zed wrote { command: { path, args, env } }.
  const nested = isObject(given['command']) ? given['command'] : undefined
  const command = textOf(nested?.['path'] ?? given['command'])
  if (command === undefined) return undefined
  const from = nested ?? given
  const args = Array.isArray(from['args']) ? from['args'].map(String) : []
  const env = Object.entries(textsOf(from['env'])).map(([key, value]) => [key, reading.variable(key, value)])
  const cwd = textOf(given['cwd'])
  return {
    command: reading.plain(command),
    ...(args.length > 0 && { args: args.map((arg, i) => reading.argument(arg, args[i - 1], i)) }),
    ...(cwd !== undefined && { cwd: absolute(reading.plain(cwd)) }),
    ...(env.length > 0 && { env: Object.fromEntries(env) }),
  }
}

function absolute(cwd: string): string {
  if (path.isAbsolute(cwd) || cwd.startsWith('${')) return cwd
  throw new NotPortable(`its "cwd" ${JSON.stringify(cwd)} is relative to its client`)
}

class NotPortable extends Error {}

/**
 * A redactor that also knows names that mean a secret only in a client's file. It recognises keys and tokens by their
 * form.
 */
const redactor = createRedactor({ keys: ['key', 'auth', 'pat', 'credential', 'credentials', 'dsn'] })
const OPAQUE = /^(?=.*\d)(?=.*[A-Za-z])[\w+=.~-]{20,}$/
const REFERENCE = /\$\{([^}]*)\}/g
const KNOWN: ReadonlyMap<string, string> = new Map([
  ['userHome', '${HOME}'],
  ['pathSeparator', path.sep],
  ['/', path.sep],
])

/** Reads the texts of one server. */
class EntryReading {
  readonly secrets: { variable: string; from: string }[] = []
  readonly variables = new Set<string>()
  readonly #name: string

  constructor(name: string) {
    this.#name = name
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, '_')
      .replace(/^_+|_+$/g, '')
  }

  /** Converts a variable of the server's process. A secret becomes a variable of the same name. */
  variable(key: string, value: string): string {
    const isSecret = redactor.redactText(`${key}=${value}`) !== `${key}=${value}` || OPAQUE.test(value)
    return isSecret && !value.includes('${') ? this.#refer(key, `env.${key}`) : this.plain(value)
  }

  /** Converts the value of a header. It counts as a secret unless its name is known to be harmless. */
  header(name: string, value: string): string {
    if (value.includes('${') || PUBLIC_HEADERS.has(name.toLowerCase())) return this.plain(value)
    const [, scheme = ''] = /^((?:Bearer|Basic|Token) )./i.exec(value) ?? []
    return `${scheme}${this.#refer(`${this.#name}_${toVariable(name)}`, `headers.${name}`)}`
  }

  argument(value: string, before: string | undefined, index: number): string {
    const [, flag = ''] = /^(--?[\w-]+=)./.exec(value) ?? []
    const isFlagged = before !== undefined && /^--?[\w-]+$/.test(before) && isRedacted(`${before} ${value}`)
    if (!value.includes('${') && (isFlagged || isRedacted(value)))
      return `${flag}${this.#refer(`${this.#name}_ARG_${index + 1}`, `args[${index}]`)}`
    return this.plain(value)
  }

  value(value: string, variable: string, from: string): string {
    if (!value.includes('${') && isRedacted(value)) return this.#refer(`${this.#name}_${variable}`, from)
    return this.plain(value)
  }

  /** Converts a client's references to variables into the configuration's form. */
  plain(value: string): string {
    return value.replaceAll(REFERENCE, (whole, inner: string) => {
      const known = KNOWN.get(inner)
      if (known !== undefined) return known
      const input = /^input:(.+)$/.exec(inner)?.[1]
      const variable = input === undefined ? inner.replace(/^env:/, '') : toVariable(input)
      const [, name] = /^([A-Za-z_]\w*)(?::-.*)?$/.exec(variable) ?? []
      if (name === undefined || variable.startsWith('workspaceFolder'))
        throw new NotPortable(`it uses ${whole}, which only its client knows`)
      if (!variable.includes(':-')) this.variables.add(name)
      return `\${${variable}}`
    })
  }

  #refer(variable: string, from: string): string {
    this.secrets.push({ variable, from })
    return `\${${variable}}`
  }
}

const PUBLIC_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'user-agent', 'accept-language'])

function isRedacted(text: string): boolean {
  return redactor.redactText(text) !== text
}

function toVariable(name: string): string {
  return name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) return {}
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)]))
}

/** Returns a name that is valid in the configuration and not taken. */
export function toServerName(name: string, client: string, taken: ReadonlySet<string>): string {
  const made =
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 48) || 'server'
  const names = [made, `${made}-${client}`, ...Array.from({ length: 100 }, (_, i) => `${made}-${i + 2}`)]
  return names.find((one) => !taken.has(one)) ?? made
}
