import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Tool } from '@toolgate/core'
import { findDownloads, type GatewayConfig } from '@toolgate/gateway'
import { keepArgument, keepHeader, keepUrl, keepVariable } from '../clients/keep-secrets.ts'
import { writeChanges } from '../clients/text-file.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { type EntrySecret, EntrySecrets, prepareSecrets, secretChanges, toTrial } from '../project/secret-files.ts'
import { checkConfig, openConfig, saveConfig, serverNames, withServer } from '../project/config-file.ts'
import { probeServers, REVIEW, type Tag, tagOf, TAGS, tagsOf } from '../project/probe-servers.ts'
import { count } from '../render.ts'
import { describeDownload } from './check.ts'
import type { ServeDeps } from './serve.ts'

export interface AddOptions {
  readonly config: string
  readonly env?: readonly string[]
  readonly header?: readonly string[]
  readonly shared?: boolean
  readonly replace?: boolean
  /** `false` with `--no-start`. */
  readonly start: boolean
  readonly json?: boolean
}

/**
 * `toolgate add <name> -- <command>` or `<url>`: adds a server to the configuration.
 *
 * The server is started once, and its tools get tags from their annotations, for the operator to review. If it does not
 * start, nothing is changed.
 */
export async function addCommand(
  name: string,
  target: readonly string[],
  options: AddOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const before = openConfig(options.config)
  const { file } = before
  if (serverNames(before).includes(name) && options.replace !== true)
    throw new CliError('usage', `${printable(file)} has a server ${JSON.stringify(name)} already.`, {
      hint: 'Choose another name, or replace it with --replace.',
    })
  const kept = new EntrySecrets(name)
  const entry = toEntry(target, options, { configDir: path.dirname(path.resolve(file)), kept })
  const added = withServer(before, name, entry)
  const trial = toTrial(entry, kept.list)
  const config = await checkConfig(
    withServer(before, name, trial.entry),
    { ...io.env, ...trial.env },
    { starts: options.start },
  )
  const downloads = entry.command === undefined ? [] : findDownloads(entry.command, entry.args ?? [])
  if (options.start && downloads.length > 0) printLine(io.stderr, printable(describeDownload(name, downloads)))
  const tools = options.start ? await listTools(name, config, start) : undefined
  const secrets = secretChanges(file, kept.list)
  prepareSecrets(file, secrets)
  writeChanges(secrets)
  saveConfig(tools ? withServer(before, name, { ...entry, ...tagsOf(tools) }, { tools: REVIEW }) : added)
  const keptIn = kept.list.map(({ file: to, from }) => ({ file: to, from }))
  if (options.json) printJson(io.stdout, { name, config: file, tools: tools?.map(toRow), secrets: keptIn })
  else printAdded({ name, file, tools, config, secrets: keptIn }, io)
  return 'ok'
}

interface ServerEntry {
  readonly command?: string
  readonly args?: readonly string[]
  readonly url?: string
  readonly env?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly per?: 'shared'
}

function toEntry(
  target: readonly string[],
  { env = [], header = [], shared }: AddOptions,
  { configDir, kept }: { readonly configDir: string; readonly kept: EntrySecrets },
): ServerEntry {
  const [first, ...rest] = target
  if (first === undefined)
    throw new CliError('usage', 'Name the server: its command after "--", or its URL.', {
      hint: 'Such as: toolgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ./docs\n         toolgate add docs https://example.com/mcp',
    })
  const per = shared ? ({ per: 'shared' } as const) : {}
  if (/^https?:\/\//.test(first)) {
    if (rest.length > 0) throw new CliError('usage', `A URL has no arguments: ${printable(rest.join(' '))}`)
    if (env.length > 0) throw new CliError('usage', '--env is for a command. A URL has --header.')
    const headers = pairs(header, ':', '--header "Authorization: Bearer ${TOKEN}"')
    return { ...withoutSecrets(first, headers, kept), ...per }
  }
  if (header.length > 0) throw new CliError('usage', '--header is for a URL. A command has --env.')
  return {
    command: toPortable(first, configDir),
    ...(rest.length > 0 && {
      args: rest.map((arg, i) => toPortable(isWritten(arg) ? arg : keepArgument(arg, rest[i - 1], i, kept), configDir)),
    }),
    ...withSome('env', keepVariables(pairs(env, '=', '--env NAME, or --env NAME=value'), kept)),
    ...per,
  }
}

function withSome(key: 'env' | 'headers', values: Readonly<Record<string, string>>): object {
  return Object.keys(values).length > 0 ? { [key]: values } : {}
}

function withoutSecrets(
  given: string,
  headers: Readonly<Record<string, string>>,
  kept: EntrySecrets,
): Pick<ServerEntry, 'url' | 'headers'> {
  const { url, login } = isWritten(given) ? { url: given } : keepUrl(given, kept)
  const all = Object.entries(headers).map(([name, value]) => [
    name,
    isWritten(value) ? value : keepHeader(name, value, kept),
  ])
  return {
    url,
    ...withSome('headers', { ...(login === undefined ? {} : { Authorization: login }), ...Object.fromEntries(all) }),
  }
}

function keepVariables(env: Readonly<Record<string, string>>, kept: EntrySecrets): Readonly<Record<string, string>> {
  const all = Object.entries(env).map(([name, value]) => [
    name,
    isWritten(value) ? value : keepVariable(name, value, kept),
  ])
  return Object.fromEntries(all)
}

/** Whether a value refers to a variable, a file or a command, so that it stays as it is written. */
function isWritten(value: string): boolean {
  return value.includes('${')
}

/** Parses `NAME=value` and `Name: value`. A name without a value becomes a reference to the environment. */
function pairs(given: readonly string[], separator: string, example: string): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf(separator)
      const name = (at === -1 ? text : text.slice(0, at)).trim()
      if (name === '' || (at === -1 && separator === ':'))
        throw new CliError('usage', `${JSON.stringify(text)} cannot be used. Such as: ${example}.`)
      return [name, at === -1 ? `\${${name}}` : text.slice(at + 1).trim()]
    }),
  )
}

/**
 * Returns an argument with its path relative to the configuration's folder, because a server does not run in the
 * current folder.
 */
function toPortable(arg: string, configDir: string): string {
  const isPath = /^\.{1,2}(?:[/\\]|$)/.test(arg) || (/[/\\.]/.test(arg) && !path.isAbsolute(arg) && existsSync(arg))
  if (!isPath) return arg
  const relative = path.relative(configDir, path.resolve(arg)).replaceAll(path.sep, '/')
  return relative === '' ? '${configDir}' : `\${configDir}/${relative}`
}

async function listTools(name: string, config: GatewayConfig, start: ServeDeps['start']): Promise<readonly Tool[]> {
  const probed = (await probeServers([name], config, start)).get(name)
  if (probed && 'tools' in probed) return probed.tools
  throw new CliError('no', `The server does not start: ${probed?.problem ?? 'it is unknown'}.`, {
    hint: `Nothing was changed. Mend it, or add it as it is with --no-start.${signInHint(name, config, probed)}`,
  })
}

/** Returns how users of a remote server sign in, if it answers that they must. */
function signInHint(name: string, { servers }: GatewayConfig, probed: object | undefined): string {
  const isRemote = servers.some((one) => one.name === name && one.command === undefined)
  const wantsLogin = isRemote && probed && 'problem' in probed && /\b401\b/.test(String(probed.problem))
  return wantsLogin ? ` If each user signs in there, write servers.${name}.oauth: {} into the file then.` : ''
}

function toRow(tool: Tool): { readonly id: string; readonly tag: Tag } {
  return { id: tool.id, tag: tagOf(tool) }
}

const MEANS: Readonly<Record<Tag, string>> = {
  read: 'they only read',
  write: 'they write, and destroy nothing',
  ask: 'they may destroy something, or say nothing about it',
}

interface Added {
  readonly name: string
  readonly file: string
  readonly tools: readonly Tool[] | undefined
  readonly config: GatewayConfig
  readonly secrets: readonly Pick<EntrySecret, 'file' | 'from'>[]
}

function printAdded({ name, file, tools, config, secrets }: Added, io: Io): void {
  const paint = painter(io.stdout, io.env)
  printLine(io.stdout, `${paint('green', 'added')}  ${name} to ${printable(file)}`)
  for (const tag of TAGS) {
    const names = (tools ?? []).filter((tool) => tagOf(tool) === tag).map((tool) => printable(tool.name))
    if (names.length > 0)
      printLine(
        io.stdout,
        `  ${count(names.length, 'tool')} tagged ${paint('bold', tag)} (${MEANS[tag]}): ${names.join(', ')}`,
      )
  }
  printLine(io.stdout, `  ${tools ? REVIEWS : 'It was not started, so its tools have no tags yet.'}`)
  for (const { file: to, from } of secrets)
    printLine(io.stdout, `  ${printable(from)} is a secret, kept in ${printable(to)}`)
  const absent = config.servers.find((one) => one.name === name)?.absent ?? []
  for (const { message } of absent)
    printLine(io.stderr, `${paint('yellow', 'warn')}  ${printable(message)}; the server waits until then`)
  for (const { path: at, message } of config.warnings ?? [])
    if (at.startsWith(`servers.${name}.`)) printLine(io.stderr, `${paint('yellow', 'warn')}  ${printable(message)}`)
}

const REVIEWS = 'The tags are what it says of itself. Review them in the file.'
