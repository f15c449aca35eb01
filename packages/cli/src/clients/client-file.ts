import { homedir } from 'node:os'
import path from 'node:path'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { nearestOf } from '@toolgate/values'
import { CliError } from '../exit.ts'
import { type Io, printable } from '../io.ts'
import { readPlacedJson } from '../placed-json.ts'
import { memberAt, namesAt, setMember } from './edit-json.ts'
import { type ClientRow, CLIENTS, type ClientMachine, PLAIN } from './table.ts'
import { readFile } from './text-file.ts'

/** A client's file, with its servers. */
export interface ClientFile {
  readonly client: ClientRow
  readonly file: string
  /** The file's text. Absent if the file does not exist. */
  readonly text: string | undefined
  /** The path of the section in the file. */
  readonly section: readonly string[]
  readonly servers: ReadonlyMap<string, unknown>
}

interface FindOptions {
  /** Uses the file of the current folder. */
  readonly project?: boolean
  /** Uses the current folder's servers in the user's file. */
  readonly local?: boolean
  /** The path of another file. */
  readonly file?: string
}

export function hostOf(env: Io['env']): ClientMachine {
  return { platform: process.platform, home: env['HOME'] || env['USERPROFILE'] || homedir(), cwd: process.cwd(), env }
}

/**
 * Returns the client of a name, and its file. A path names any other file.
 *
 * @throws {CliError} `usage` for an unknown client, with the nearest one
 */
export function findClientFile(
  name: string,
  options: FindOptions,
  host: ClientMachine,
): { client: ClientRow; file: string } {
  const client = CLIENTS.find(({ id }) => id === name)
  if (!client) {
    if (/[/\\]|\.json$/.test(name)) return { client: PLAIN, file: plainFile(name, options, host) }
    const ids = CLIENTS.map(({ id }) => id)
    const near = nearestOf(name, ids)
    throw new CliError('usage', `No client is named ${JSON.stringify(name)}.${near ? ` Did you mean ${near}?` : ''}`, {
      hint: `The clients are: ${ids.join(', ')}. A path names any other file.`,
    })
  }
  if (options.file !== undefined) return { client, file: path.resolve(host.cwd, options.file) }
  if (options.local) return { client, file: userFile(client, host) }
  return { client, file: options.project ? projectFile(client, host) : defaultFile(client, host) }
}

function plainFile(name: string, { project, local, file }: FindOptions, { cwd }: ClientMachine): string {
  const option = project ? '--project' : local ? '--local' : file === undefined ? undefined : '--file'
  if (option === undefined) return path.resolve(cwd, name)
  throw new CliError('usage', `${printable(name)} is a file already, so ${option} says nothing more.`, {
    hint: `${option} is for a client by its name.`,
  })
}

function userFile({ user, folders, title }: ClientRow, host: ClientMachine): string {
  if (user === undefined || folders === undefined)
    throw new CliError('usage', `${title} keeps no servers of single folders in the file of the user.`)
  return user(host)
}

function projectFile({ project, title }: ClientRow, { cwd }: ClientMachine): string {
  if (project === undefined) throw new CliError('usage', `${title} has no file in a project.`)
  return path.join(cwd, project)
}

/** Returns the preferred file, or the other one if only that exists. */
function defaultFile({ user, project, prefers }: ClientRow, host: ClientMachine): string {
  const files = [user?.(host), project === undefined ? undefined : path.join(host.cwd, project)]
  if (prefers === 'project') files.reverse()
  const known = files.filter((file) => file !== undefined)
  return known.find((file) => readFile(file) !== undefined) ?? known[0] ?? ''
}

const BOM = '\u{feff}'

function withoutBom(text: string | undefined = ''): string {
  return text.startsWith(BOM) ? text.slice(BOM.length) : text
}

/**
 * Reads the servers of a client. With a folder, it reads the servers that the client's file has for that folder.
 *
 * @throws {CliError} `usage` for a file that is not JSON, with line and column, or whose servers are not an object
 */
export function readClientFile(client: ClientRow, file: string, folder?: string): ClientFile {
  const text = readFile(file)
  const body = withoutBom(text)
  const { value, problem } = body.trim() === '' ? { value: {} } : readPlacedJson(body, { allowTrailingComma: true })
  if (problem !== undefined)
    throw new CliError('usage', `${printable(file)}:${problem}. It was not changed.`, { code: 'client_file_invalid' })
  if (!isObject(value))
    throw new CliError('usage', `${printable(file)} is not a JSON object. It was not changed.`, {
      code: 'client_file_invalid',
    })
  const section = sectionOf(client, value, folder)
  const servers = memberAt(value, section.slice(0, -1))[section.at(-1) ?? ''] ?? {}
  if (!isObject(servers))
    throw new CliError(
      'usage',
      `${printable(file)}: "${printable(section.join('.'))}" is not an object. It was not changed.`,
      {
        code: 'client_file_invalid',
      },
    )
  return { client, file, text, section, servers: new Map(Object.entries(servers)) }
}

/**
 * Checks that each server is read and can be moved. Otherwise one would stay in the client, and go past the gateway.
 *
 * @throws {CliError} `usage`
 */
export function checkMovable({ file, section, text }: ClientFile): void {
  const names = namesAt(withoutBom(text), section)
  const place = `${printable(file)}: "${printable(section.join('.'))}"`
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  const problem = names.includes('__proto__')
    ? 'has "__proto__", which cannot be the name of a server'
    : twice !== undefined && `has "${printable(twice)}" twice`
  if (problem) throw new CliError('usage', `${place} ${problem}. It was not changed.`, { code: 'client_file_invalid' })
}

/** Returns the section with the servers. A plain file may use the key of any client. */
function sectionOf(client: ClientRow, value: JsonObject, folder: string | undefined): readonly string[] {
  const { section, folders } = client
  if (client === PLAIN)
    return [['mcpServers', 'servers', 'context_servers'].find((key) => isObject(value[key])) ?? section]
  if (folder === undefined || folders === undefined) return [section]
  const known = foldersAbove(folder).find((one) => isObject(memberAt(value, [folders])[one]))
  return [folders, known ?? folder, section]
}

/** Returns a folder and those above it, because the client may have been started in any of them. */
function foldersAbove(folder: string): readonly string[] {
  const above = path.dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersAbove(above)]
}

/** Returns the text with the given servers set, or removed if the value is `undefined`. Comments and layout stay. */
export function withEntries({ text, section }: ClientFile, entries: ReadonlyMap<string, object | undefined>): string {
  const hasBom = text?.startsWith(BOM) === true
  const body = withoutBom(text)
  let changed = body.trim() === '' ? '{}\n' : body
  for (const [name, value] of entries) changed = setMember(changed, section, name, value)
  return hasBom ? `${BOM}${changed}` : changed
}
