import { isObject } from '@toolgate/values/json'
import { nearestOf } from '@toolgate/values'
import { listenUrlOf } from '../address.ts'
import { CliError } from '../exit.ts'
import { printable } from '../io.ts'
import type { ConfigFile } from './config-file.ts'
import { readKeys } from './keys-file.ts'

/** A caller for agents, as in the file. Variables are not replaced. */
export interface AgentCaller {
  readonly user: string
  readonly key: string | undefined
}

/**
 * Returns the agent that a command serves: the named one, or the only one.
 *
 * @throws {CliError} `usage`, with the existing callers
 */
export function findAgent({ file, doc }: ConfigFile, as: string | undefined): AgentCaller {
  const { callers } = doc.toJS() as { readonly callers?: unknown }
  const agents = (Array.isArray(callers) ? callers : []).filter(isObject).filter((one) => one['for'] !== 'console')
  const users = [...new Set(agents.map(({ user }) => String(user)))]
  const user = as ?? (users.length === 1 ? users[0] : undefined)
  if (user === undefined || !users.includes(user)) {
    const near = as === undefined ? undefined : nearestOf(as, users)
    const problem = as === undefined ? 'Name the caller with --as <user>.' : `No agent is named ${JSON.stringify(as)}.`
    throw new CliError('usage', `${problem}${near ? ` Did you mean ${printable(near)}?` : ''}`, {
      hint:
        users.length === 0 ? `${file} has no callers for agents.` : `${file} has: ${users.map(printable).join(', ')}.`,
    })
  }
  const plain = agents.find((one) => one['user'] === user)?.['key']
  const kept = readKeys(file).find((key) => key.user === user && key.for === 'mcp')?.key
  return { user, key: kept ?? (typeof plain === 'string' && !plain.includes('${') ? plain : undefined) }
}

/** Returns the address at which the configuration is served. */
export function listenUrl({ doc }: Pick<ConfigFile, 'doc'>): string {
  const file: unknown = doc.toJS()
  const listen = isObject(file) ? file['listen'] : undefined
  const { host, port, tls } = isObject(listen) ? listen : {}
  return listenUrlOf({
    host: typeof host === 'string' ? host : '127.0.0.1',
    port: typeof port === 'number' ? port : 8787,
    ...(isObject(tls) && { tls }),
  })
}

/** Returns `publicUrl` of a configuration, or an empty text. Variables are not replaced. */
export function publicUrlOf({ doc }: Pick<ConfigFile, 'doc'>): string {
  const file: unknown = doc.toJS()
  const url = isObject(file) ? file['publicUrl'] : undefined
  return typeof url === 'string' ? url : ''
}
