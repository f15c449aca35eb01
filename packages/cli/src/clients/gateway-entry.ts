import path from 'node:path'
import { mcpUrlOf } from '../address.ts'
import { CliError } from '../exit.ts'
import { BIN } from '../files.ts'
import { findAgent, listenUrl } from '../project/callers.ts'
import { openConfig } from '../project/config-file.ts'
import type { ClientRow } from './table.ts'
import { checkSendable } from '../usable-key.ts'

export interface EntryOptions {
  readonly config: string
  readonly as?: string
  readonly app?: string
  /** Whether the entry uses HTTP, with the key in the client's file. */
  readonly http?: boolean
  readonly url?: string
  readonly key?: string
  /** The variable of the client's environment that has the key. The file then has no key. */
  readonly keyEnv?: string
}

/** The entry that connects a client to the gateway. */
export interface GatewayEntry {
  readonly value: object
  /** A description of how the client uses it. */
  readonly does: string
  readonly hasKey: boolean
}

/** @throws {CliError} `usage` */
export function gatewayEntry(client: ClientRow, options: EntryOptions): GatewayEntry {
  return options.http || options.url !== undefined ? overHttp(client, options) : byCommand(client, options)
}

function byCommand({ title, stdio }: ClientRow, { config, as, app }: EntryOptions): GatewayEntry {
  const { user } = findAgent(openConfig(config), as)
  const [command, ...own] = ownCommand()
  const args = [...own, 'stdio', '--config', path.resolve(config), '--as', user, ...(app ? ['--app', app] : [])]
  return {
    value: stdio?.(command, args) ?? { command, args },
    does: `${title} starts "toolgate stdio" for ${user}`,
    hasKey: false,
  }
}

function overHttp(client: ClientRow, options: EntryOptions): GatewayEntry {
  const { title, http } = client
  const { config, as, app, url, key, keyEnv } = options
  if (!http) throw new CliError('usage', `${title} starts commands only. Leave --http and --url out.`)
  if (keyEnv !== undefined) return withKeyOfEnv(client, http, options, keyEnv)
  const file = url !== undefined && key !== undefined ? undefined : openConfig(config)
  const agent = file && key === undefined ? findAgent(file, as) : undefined
  const given = key ?? agent?.key
  if (given !== undefined) checkSendable({ key: given, from: key === undefined ? config : '--key' })
  if (given === undefined)
    throw new CliError(
      'usage',
      `The key of ${agent?.user ?? 'the caller'} is known by its hash only. Give it with --key.`,
    )
  const endpoint = mcpUrlOf(url ?? (file ? listenUrl(file) : ''), app).href
  return {
    value: http(endpoint, { Authorization: `Bearer ${given}` }),
    does: `${title} connects to ${endpoint}${agent ? ` as ${agent.user}` : ''}`,
    hasKey: true,
  }
}

/** Returns an entry without the key: the client reads it from its environment. */
function withKeyOfEnv(
  { title, variable }: ClientRow,
  http: NonNullable<ClientRow['http']>,
  { config, app, url }: EntryOptions,
  name: string,
): GatewayEntry {
  if (!variable)
    throw new CliError('usage', `${title} reads no variables in headers.`, {
      hint: 'Leave --http and --key-env out: then the file needs no key.',
    })
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new CliError('usage', `--key-env must name a variable, such as TOOLGATE_KEY.`)
  const endpoint = mcpUrlOf(url ?? listenUrl(openConfig(config)), app).href
  return {
    value: http(endpoint, { Authorization: `Bearer ${variable(name)}` }),
    does: `${title} connects to ${endpoint} with the key in its variable ${name}`,
    hasKey: false,
  }
}

/**
 * Returns the command with its full path, because desktop clients have a PATH of their own.
 *
 * @throws {CliError} `usage` for a command in the cache of npx: it may be deleted, and a later run may fetch another
 * author's package of that name.
 */
export function ownCommand(bin: string = BIN): readonly [string, ...string[]] {
  if (bin.split(path.sep).includes('_npx'))
    throw new CliError('usage', 'This command lies in the cache of npx, which may be gone tomorrow.', {
      hint: 'Install it first, such as with "npm install --global" and the tarball that "npm run pack" made. Then run the command again.',
    })
  return [process.execPath, bin]
}
