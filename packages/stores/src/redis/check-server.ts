import { ConfigError } from '@toolgate/core'
import { messageOf } from '@toolgate/values'
import type { Ask } from './connection.ts'

/**
 * Checks that a server can count limits. It must accept writes, not be a cluster, evict nothing, and lose at most its
 * last second or, detectably, everything at a restart.
 *
 * @throws {ConfigError} with the reason
 */
export async function checkServer(ask: Ask, isStatedSafe: boolean): Promise<void> {
  const info = parseInfo(await ask('INFO'))
  if (info.get('redis_mode') === 'cluster')
    throw unusable('it is a cluster, where the rules of one call would be in several slots; Toolgate needs one Redis')
  if (info.get('redis_mode') === 'sentinel') throw unusable('it is a Sentinel; name the Redis that it watches')
  if (info.get('role') !== 'master') throw unusable('it is a read-only replica; name the primary')
  if (isStatedSafe) return
  const policy = (await readConfig(ask, 'maxmemory-policy')) ?? info.get('maxmemory_policy')
  if (policy === undefined)
    throw unusable('its eviction policy cannot be read; if it is noeviction, say so with "statedSafe: true"')
  if (policy !== 'noeviction')
    throw unusable(`its maxmemory-policy is ${policy}, which forgets uses when memory is short; set noeviction`)
  if (info.get('aof_enabled') === '1') return
  const snapshots = await readConfig(ask, 'save')
  if (snapshots !== undefined && snapshots !== '')
    throw unusable(
      'it keeps snapshots only, so that a restart forgets the uses since the last one and nobody sees it; set "appendonly yes", or save ""',
    )
}

/** Returns a setting, or `undefined` if it may not be read. */
async function readConfig(ask: Ask, name: string): Promise<string | undefined> {
  try {
    const answer = await ask('CONFIG', 'GET', name)
    return Array.isArray(answer) && typeof answer[1] === 'string' ? answer[1] : undefined
  } catch (error) {
    if (/^(?:ERR unknown command|NOPERM|ERR .*not (?:allowed|permitted))/i.test(messageOf(error))) return undefined
    throw error
  }
}

function parseInfo(answer: unknown): ReadonlyMap<string, string> {
  const lines = String(answer).split('\r\n')
  return new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1)]
    }),
  )
}

function unusable(problem: string): ConfigError {
  return new ConfigError('', problem)
}
