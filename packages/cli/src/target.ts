import { existsSync } from 'node:fs'
import { DEFAULT_URL, isLoopbackUrl, parseUrl } from './address.ts'
import { type Io, printable, printLine } from './io.ts'
import { type CalledAddress, unreachedBy } from './key-reach.ts'
import { nextCommand } from './next-command.ts'
import { type ConsoleKeys, readConsoleKeys } from './project/console-keys.ts'
import { readRunning } from './project/running-file.ts'
import { checkSendable, isSendable, type UsableKey } from './usable-key.ts'

/** The gateway that a command calls, and the keys. */
export interface GatewayAddress {
  readonly url: string
  /** The first key that the gateway knows is used. The others are tried only if the user named none. */
  readonly keys: readonly UsableKey[]
  readonly keyHint: string
  readonly startHint: string
  /** Whether there is no other console key, so that nobody asks whose is used. */
  readonly isAlone: boolean
  /** Prints whose key is used. Absent for programs. */
  readonly say?: ((line: string) => void) | undefined
  /** Default: 10 s. */
  readonly timeoutMs?: number
}

export interface TargetOptions {
  readonly url?: string
  readonly key?: string
  readonly config?: string
  readonly json?: boolean
}

export const DEFAULT_CONFIG = 'toolgate.yaml'
const DEMO_KEY: UsableKey = { key: 'demo-console', from: 'the quickstart' }

/**
 * Returns the gateway and the keys, each from the first place that has one.
 *
 * The address: `--url`, TOOLGATE_URL, the running gateway's own note, the configuration, the default. The key: `--key`,
 * TOOLGATE_KEY, `.toolgate/keys.json`, a plain console key of the configuration. The configuration is `--config`, or
 * `toolgate.yaml` in the current folder. A gateway on this machine also gets the public demo key of the quickstart.
 * Another machine gets no key that was found in a folder, unless the configuration names the address.
 *
 * @throws {CliError} `usage`, also for a key that no request can carry
 */
export function findTarget(given: TargetOptions, { env, stderr }: Pick<Io, 'env' | 'stderr'>): GatewayAddress {
  const config = given.config ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined)
  const known = config === undefined ? undefined : readConsoleKeys(config, env)
  const own = config === undefined ? undefined : (readRunning(config)?.url ?? known?.url)
  const named = given.url ?? (env['TOOLGATE_URL'] || undefined)
  const url = parseUrl(named ?? own ?? DEFAULT_URL).origin
  const found = findKeys(given, env, { url, isNamed: named !== undefined, own, known })
  return {
    url,
    keys: found.keys,
    keyHint: found.problem ?? keyHintOf(found.keys, config),
    startHint:
      config === undefined
        ? 'Start one with "toolgate serve --config <file>" or "toolgate try", or give its address with --url.'
        : `Start it with "${nextCommand('serve', { config })}".`,
    isAlone: (known?.count ?? 0) < 2,
    say: given.json ? undefined : (line) => printLine(stderr, printable(line)),
  }
}

interface FoundPlaces extends CalledAddress {
  /** The address of the gateway of the configuration. */
  readonly own: string | undefined
  readonly known: ConsoleKeys | undefined
}

/** The keys that may be sent, or why none may be. */
interface FoundKeys {
  readonly keys: readonly UsableKey[]
  readonly problem?: string | undefined
}

function findKeys(given: TargetOptions, env: Io['env'], { own, known, ...called }: FoundPlaces): FoundKeys {
  const { url } = called
  const named = given.key !== undefined ? { key: given.key, from: '--key' } : variable(env)
  if (named !== undefined) checkSendable(named)
  const all = named !== undefined ? [{ ...known?.whose(named.key), ...named }] : (known?.keys ?? [])
  const usable = all.filter(({ key }) => isSendable(key))
  if (usable.length === 0 && all[0] !== undefined) checkSendable(all[0])
  const addresses = [...(known?.addresses ?? []), ...(own === undefined ? [] : [own])]
  const problem = all.length === 0 ? undefined : unreachedBy({ isNamed: named !== undefined }, called, addresses)
  if (problem !== undefined) return { keys: [], problem }
  if (named !== undefined) return { keys: usable }
  const isOwn = own !== undefined && parseUrl(own).origin === url
  if (isOwn && usable.length > 0) return { keys: usable }
  // Another machine gets one key only: it must not collect the others.
  return { keys: isLoopbackUrl(url) ? [...usable, DEMO_KEY] : usable.slice(0, 1) }
}

function variable(env: Io['env']): UsableKey | undefined {
  const key = env['TOOLGATE_KEY']
  return key ? { key, from: 'TOOLGATE_KEY' } : undefined
}

/** Returns what to do if the gateway refuses the keys. */
function keyHintOf(keys: readonly UsableKey[], config: string | undefined): string {
  const own = keys.filter((key) => key !== DEMO_KEY)
  if (own.length === 0) return 'Give a console key with --key or TOOLGATE_KEY.'
  const places = own.map(({ from }) => from).join(', ')
  const pid = config === undefined ? undefined : readRunning(config)?.pid
  const isOfFile = own.some(({ from }) => from !== '--key' && from !== 'TOOLGATE_KEY')
  return [
    `The key is that in ${places}. The API takes a console key ("for: console" in the configuration), not that of an agent.`,
    ...(isOfFile && pid !== undefined
      ? [`If the key is new in the file, make the gateway read the file again: kill -HUP ${pid}`]
      : []),
  ].join('\n')
}
