import { statSync } from 'node:fs'
import path from 'node:path'
import { mentionsOwner } from './instance-config.ts'
import type { GatewayConfig } from './config.ts'
import { type ConfigPath, type ConfigWarning, formatPath } from './problems.ts'
import type { Reading } from './reading.ts'
import type { ServerInput } from './schema/servers.ts'
import type { Source } from './source.ts'

type Warning = Pick<ConfigWarning, 'code' | 'path'> & { readonly at: ConfigPath; readonly text: string }

/** Checks that the instances of a server can run at the same time, and warns about resources that they would share. */
export function checkPer(reading: Reading, name: string, input: ServerInput): void {
  const at = ['servers', name]
  if (input.per === 'shared') return checkShared(reading.source, at, input)
  if (input.command === undefined && input.package === undefined) return
  if (input.url !== undefined && !input.url.includes('${port}'))
    reading.source.report(
      [...at, 'url'],
      'found a fixed port, expected ${port}, as each user has an instance that listens; or write "per: shared"',
    )
  if (input.cwd !== undefined && !mentionsOwner(input.cwd))
    warn(reading.source, [...at, 'cwd'], 'the instances of all users run in this folder; write ${user} into it')
  for (const value of valuesOf(at, input)) checkValue(reading, value, input.cwd === undefined)
}

/** Rejects `listing: user`, `${user}` and `${tenant}` for a shared server, which has no single user. */
function checkShared(source: Source, at: ConfigPath, input: ServerInput): void {
  const { args = [], env = {}, headers = {}, cwd = '' } = input
  if (input.listing === 'user')
    source.report(
      [...at, 'listing'],
      'found "user" with "per: shared", expected "per: user", as one instance has one list for all users',
    )
  const texts = [...args, ...Object.values(env), ...Object.values(headers), cwd]
  if (texts.some(mentionsOwner))
    source.report(
      [...at, 'per'],
      'found "shared" with ${user} or ${tenant}, expected "user", as one instance serves all users',
    )
}

/** One argument or environment variable of a child, without the name of its option. */
interface Value {
  readonly at: ConfigPath
  /** The option's name, such as `--port` or `PORT`; empty for a positional argument. */
  readonly option: string
  readonly text: string
}

function valuesOf(at: ConfigPath, { args = [], env = {} }: ServerInput): readonly Value[] {
  const ofArgs = args.map((arg, i): Value => {
    const [, option, text] = /^(--?[\w-]+)=(.*)$/s.exec(arg) ?? []
    const before = args[i - 1] ?? ''
    return { at: [...at, 'args', i], option: option ?? (/^--?[\w-]+$/.test(before) ? before : ''), text: text ?? arg }
  })
  return [...ofArgs, ...Object.entries(env).map(([name, text]) => ({ at: [...at, 'env', name], option: name, text }))]
}

const PORT_OPTION = /port$/i
const FOLDER_OPTION = /(?:dir|directory|folder|home|profile|data|storage|file|path|db)$/i

function checkValue({ source, configDir }: Reading, { at, option, text }: Value, ownCwd: boolean): void {
  if (mentionsOwner(text)) return
  if (PORT_OPTION.test(option) && /^\d{2,5}$/.test(text))
    return warn(source, at, `the instances of all users get the port ${text}, and only one can listen on it`)
  if (!isPath(text)) return
  const found = statSync(path.resolve(configDir, text), { throwIfNoEntry: false })
  if (ownCwd && found && !path.isAbsolute(text))
    return source.report(
      at,
      `found ${JSON.stringify(text)}, expected "\${configDir}/${path.normalize(text)}", as each instance runs in a folder of its own`,
    )
  if (found?.isDirectory() || (FOLDER_OPTION.test(option) && !found?.isFile()))
    warn(source, at, `the instances of all users share ${JSON.stringify(text)}; write \${user} into it`)
}

function isPath(text: string): boolean {
  return !text.includes('://') && (text.includes('/') || /\.(?:[cm]?[jt]s|py|json|db)$/.test(text))
}

/**
 * Returns a warning for each server whose instances two tenants could share, because the entry names the user without
 * the tenant.
 */
export function findOwnerWarnings({
  servers,
  callers,
}: Pick<GatewayConfig, 'servers' | 'callers'>): readonly Warning[] {
  if (!callers.some(({ caller }) => caller.tenant !== undefined)) return []
  return servers.flatMap(({ name, args, env, headers, cwd = '' }): readonly Warning[] => {
    const texts = [...args, ...Object.values(env), ...Object.values(headers), cwd]
    if (!texts.some((text) => text.includes('${user}') && !text.includes('${tenant}'))) return []
    const at = ['servers', name]
    const text = '${user} without ${tenant} is the same for users of one name in two tenants; write ${tenant}/${user}'
    return [{ code: 'instances_share', at, path: formatPath(at), text }]
  })
}

function warn(source: Source, at: ConfigPath, text: string): void {
  source.warn({ code: 'instances_share', at, path: formatPath(at), text })
}
