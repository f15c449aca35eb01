import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { CliError } from '../exit.ts'
import { type EntrySecret, EntrySecrets } from '../project/secret-files.ts'
import { keepArgument, keepHeader, keepUrl, keepVariable } from './keep-secrets.ts'
import { isOpaque, isRedacted } from './secret-values.ts'

/** A server of a client's file as an entry of the configuration. */
export interface ImportedServer {
  readonly entry: JsonObject
  /** The secrets, which the entry refers to by file. Never print their values. */
  readonly secrets: readonly EntrySecret[]
  /** Variables of the environment that the client's file already uses. */
  readonly variables: readonly string[]
}

type ImportResult = ImportedServer | { readonly left: string }

/** The transports that a gateway speaks. */
const TYPES: ReadonlySet<unknown> = new Set([
  undefined,
  'stdio',
  'local',
  'http',
  'streamable-http',
  'streamableHttp',
  'remote',
])

/**
 * Returns a client's server as an entry of the configuration, with `server` as its name there. Secrets become references
 * to files; the entry never contains their values. A server that the gateway cannot run is left out, with the reason.
 */
export function importEntry(server: string, given: unknown): ImportResult {
  if (!isObject(given)) return { left: 'it is not an object' }
  if (given['disabled'] === true || given['enabled'] === false) return { left: 'it is switched off' }
  const type = isObject(given['transport']) ? given['transport']['type'] : (given['type'] ?? given['transport'])
  if (type === 'sse') return { left: 'it speaks HTTP+SSE, which the gateway does not' }
  if (!TYPES.has(type)) return { left: `it speaks ${JSON.stringify(type)}, which the gateway does not` }
  if (given['headersHelper'] !== undefined) return { left: 'a command makes its headers ("headersHelper")' }
  const reading = new EntryReading(server)
  try {
    const entry =
      textOf(given['url'] ?? given['serverUrl']) === undefined ? commandOf(given, reading) : urlOf(given, reading)
    return entry === undefined
      ? { left: 'it has neither a command nor a URL' }
      : { entry, secrets: reading.secrets.list, variables: [...reading.variables] }
  } catch (error) {
    if (error instanceof NotPortable || error instanceof CliError) return { left: error.message }
    throw error
  }
}

function urlOf(given: JsonObject, reading: EntryReading): JsonObject {
  const { url, login } = reading.url(textOf(given['url'] ?? given['serverUrl']) ?? '')
  const written = Object.entries(textsOf(given['headers']))
  const headers = written.map(([header, value]) => [header, reading.header(header, value)])
  if (login !== undefined && !written.some(([header]) => header.toLowerCase() === 'authorization'))
    headers.push(['Authorization', login])
  return { url, ...(headers.length > 0 && { headers: Object.fromEntries(headers) }) }
}

/** Returns the variables of a server, with those of its `envFile`. */
function envOf(given: JsonObject, from: JsonObject, reading: EntryReading): readonly (readonly [string, string])[] {
  const own = textsOf(from['env'])
  const file = textOf(given['envFile'])
  const read = file === undefined ? {} : readEnvFile(reading.plain(file))
  return Object.entries({ ...read, ...own }).map(([key, value]) => [key, reading.variable(key, value)])
}

function readEnvFile(file: string): Readonly<Record<string, string>> {
  if (!path.isAbsolute(file)) throw new NotPortable(`its "envFile" ${JSON.stringify(file)} is relative to its client`)
  try {
    return textsOf(parseEnv(readFileSync(file, 'utf8')))
  } catch {
    throw new NotPortable(`its "envFile" ${JSON.stringify(file)} cannot be read`)
  }
}

function commandOf(given: JsonObject, reading: EntryReading): JsonObject | undefined {
  // Earlier versions of Zed wrote { command: { path, args, env } }.
  const nested = isObject(given['command']) ? given['command'] : undefined
  const command = textOf(nested?.['path'] ?? given['command'])
  if (command === undefined) return undefined
  const from = nested ?? given
  const args = Array.isArray(from['args']) ? from['args'].map(String) : []
  const env = envOf(given, from, reading)
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

const REFERENCE = /\$\{(?:([^}]*)\})?/g
const KNOWN: ReadonlyMap<string, string> = new Map([
  ['userHome', '${HOME}'],
  ['pathSeparator', path.sep],
  ['/', path.sep],
])

/** Variables of editors that no other program has. */
const OF_EDITORS =
  /^(?:workspaceFolder|workspaceRoot|fileWorkspaceFolder|relativeFile|fileBasename|fileDirname|fileExtname)|^(?:file|cwd|execPath|lineNumber|selectedText)$/

/** Reads the texts of one server. */
class EntryReading {
  readonly secrets: EntrySecrets
  readonly variables = new Set<string>()

  constructor(server: string) {
    this.secrets = new EntrySecrets(server)
  }

  /** Converts a variable of the server's process. */
  variable(key: string, value: string): string {
    return this.#keep(value, () => keepVariable(key, value, this.secrets))
  }

  header(name: string, value: string): string {
    return this.#keep(value, () => keepHeader(name, value, this.secrets))
  }

  argument(value: string, before: string | undefined, index: number): string {
    return this.#keep(value, () => keepArgument(value, before, index, this.secrets))
  }

  url(value: string): { readonly url: string; readonly login?: string } {
    return hasReference(value) ? { url: this.plain(value) } : keepUrl(value, this.secrets)
  }

  #keep(value: string, keep: () => string): string {
    const kept = hasReference(value) ? value : keep()
    return kept === value ? this.plain(value) : kept
  }

  /** Converts a client's references to variables into the configuration's form. */
  plain(value: string): string {
    // A file can contain no reference, so a secret beside one has no place.
    const around = value.replaceAll(REFERENCE, 'x')
    if (hasReference(value) && (isRedacted(around) || around.split(/[\s:@/=,;]+/).some(isOpaque)))
      throw new NotPortable('it has a secret beside a reference in one text')
    return value.replaceAll(REFERENCE, (whole, inner: string | undefined) => {
      // A "${" that no "}" closes is text.
      if (inner === undefined) return `$${whole}`
      const known = KNOWN.get(inner)
      if (known !== undefined) return known
      if (/^file:(?:\/|[A-Za-z]:[/\\])/.test(inner)) return whole
      const input = /^input:(.+)$/.exec(inner)?.[1]
      const variable = input === undefined ? inner.replace(/^env:/, '') : toVariable(input)
      const [, name] = /^([A-Za-z_]\w*)(?::-.*)?$/.exec(variable) ?? []
      if (name === undefined || OF_EDITORS.test(variable))
        throw new NotPortable(`it uses ${whole}, which only its client knows`)
      if (!variable.includes(':-')) this.variables.add(name)
      return `\${${variable}}`
    })
  }
}

function hasReference(value: string): boolean {
  return /\$\{[^}]*\}/.test(value)
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
