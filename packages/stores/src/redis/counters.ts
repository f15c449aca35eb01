import { hash, randomBytes } from 'node:crypto'
import { ToolgateError } from '@toolgate/core'
import { checkShape, messageOf, shapeOf } from '@toolgate/values'
import type { Clock, CounterStore, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import { placeOf } from '../open-options.ts'
import { checkServer } from './check-server.ts'
import { type Ask, openConnection, type RedisConnection } from './connection.ts'
import { SCRIPT } from './script.ts'

export interface RedisCountersOptions {
  /** `redis://user:password@host:6379/0`, or `rediss:` for TLS. Errors never contain the password. */
  readonly url: string
  /** What all keys begin with. Default `toolgate`. */
  readonly prefix?: string
  /** How long after Redis lost its keys limits are counted again by themselves. Default: never, until `reopen`. */
  readonly reopenAfterMs?: number
  /** How long Redis may be silent before calls are refused. Default 50 ms. */
  readonly silenceMs?: number
  /** States that a server whose settings cannot be read evicts nothing, and that a restart loses one second or everything. */
  readonly statedSafe?: boolean
  /** Its monotonic time must be the same for all replicas. Default: the server's. */
  readonly clock?: Pick<Clock, 'monotonicMs'>
}

const OPTIONS = shapeOf<RedisCountersOptions>({
  url: true,
  prefix: true,
  reopenAfterMs: true,
  silenceMs: true,
  statedSafe: true,
  clock: true,
})
const NAME = 'openRedisCounters'

/** Counters in Redis. While it has lost its keys, each request is refused with `state_unavailable`. */
export interface RedisCounters extends CounterStore {
  /** Returns the id of the time since the counters were opened last; `undefined` while Redis has lost its keys. */
  readEpoch(): Promise<string | undefined>
  /** Begins to count, for a Redis that is new or has lost its keys: what was used before counts no more. Returns the epoch. */
  reopen(): Promise<string>
  close(): void
}

/**
 * Opens counters that any number of replicas share, exact over all of them, on the server's clock.
 *
 * A new Redis has no epoch, as one that has lost its keys has none: `reopen` it once.
 *
 * @throws {ConfigError} for an unknown option, and for a URL, password or server that cannot be used
 * @example
 * const counters = await openRedisCounters({ url: 'redis://limits.example:6379' })
 */
export async function openRedisCounters(options: RedisCountersOptions): Promise<RedisCounters> {
  checkShape(NAME, options, OPTIONS)
  const { url, silenceMs = 50, statedSafe = false } = options
  const place = placeOf(NAME, url, ['redis:', 'rediss:'], 'redis://user:password@host:6379')
  let sha = ''
  const prepare = async (ask: Ask): Promise<void> => {
    await checkServer(ask, statedSafe)
    sha = String(await ask('SCRIPT', 'LOAD', SCRIPT))
  }
  const connection = await openConnection({ url, place, silenceMs, prepare })
  return new ConnectedCounters(connection, options, (...rest) => runScript(connection.ask, sha, rest))
}

/** Runs the script. One that the server has forgotten did not run, so it is loaded and run again. */
async function runScript(ask: Ask, sha: string, rest: readonly string[]): Promise<unknown> {
  try {
    return await ask('EVALSHA', sha, ...rest)
  } catch (error) {
    if (!(error instanceof ToolgateError) || !messageOf(error.cause).startsWith('NOSCRIPT')) throw error
    return ask('EVAL', SCRIPT, ...rest)
  }
}

const MAX_NAMES = 10_000
const NOTHING_ASKED: LimitAnswer = {
  allowed: true,
  refused: -1,
  remaining: Number.POSITIVE_INFINITY,
  resetMs: 0,
}

class ConnectedCounters implements RedisCounters {
  readonly #connection: RedisConnection
  readonly #run: Ask
  readonly #prefix: string
  readonly #clock: Pick<Clock, 'monotonicMs'> | undefined
  readonly #reopenAfter: string
  /** The names of keys that were used lately: a hash costs as much as the rest. */
  readonly #names = new Map<string, string>()
  /** Names the takes of this process. */
  readonly #process = randomBytes(8).toString('base64url')
  #takes = 0

  constructor(
    connection: RedisConnection,
    { prefix = 'toolgate', clock, reopenAfterMs }: RedisCountersOptions,
    run: Ask,
  ) {
    this.#connection = connection
    this.#run = run
    this.#prefix = prefix
    this.#clock = clock
    this.#reopenAfter = reopenAfterMs === undefined ? '' : String(reopenAfterMs * 1000)
  }

  peek(uses: readonly LimitUse[]): LimitAnswer | Promise<LimitAnswer> {
    return uses.length === 0 ? NOTHING_ASKED : this.#count('peek', uses, '')
  }

  take(uses: readonly LimitUse[]): LimitAnswer | Promise<LimitAnswer> {
    return uses.length === 0 ? NOTHING_ASKED : this.#count('take', uses, this.#process + (this.#takes++).toString(36))
  }

  async giveBack(uses: readonly LimitUse[], taken?: LimitAnswer): Promise<void> {
    if (taken?.allowed === false || uses.length === 0) return
    await this.#run(...this.#command('back', uses, taken?.take ?? ''))
  }

  async settle(uses: readonly LimitUse[], { allowed, take }: LimitAnswer, costs: readonly number[]): Promise<void> {
    if (!allowed || uses.length === 0 || take === undefined) return
    const settled = uses.map((use, i) => ({ ...use, max: costs[i] ?? use.cost ?? 1 }))
    await this.#run(...this.#command('settle', settled, take))
  }

  async readEpoch(): Promise<string | undefined> {
    const epoch = await this.#connection.ask('HGET', this.#metaKey, 'epoch')
    return typeof epoch === 'string' ? epoch : undefined
  }

  async reopen(): Promise<string> {
    await this.#connection.ask('HSETNX', this.#metaKey, 'epoch', crypto.randomUUID())
    await this.#connection.ask('HDEL', this.#metaKey, 'lost')
    return (await this.readEpoch()) ?? this.reopen()
  }

  close(): void {
    this.#connection.close()
  }

  get #metaKey(): string {
    return `${this.#prefix}:meta`
  }

  async #count(what: 'peek' | 'take', uses: readonly LimitUse[], take: string): Promise<LimitAnswer> {
    const answer = await this.#run(...this.#command(what, uses, take))
    const [status, refused, remaining, reset, now] = answer as readonly [number, number, number, number, number]
    if (status === -1)
      throw new ToolgateError('state_unavailable', 'The limits cannot be counted now.', {
        detail:
          'Redis has no epoch: it is new, or has lost its keys. ' +
          (reset < 0 ? 'Open the limits with reopen().' : `The limits open in ${Math.ceil(reset / 1_000_000)} s.`),
      })
    return { allowed: status === 1, refused, remaining, resetMs: reset / 1000, atMs: now / 1000, take }
  }

  /** Returns the script's keys and arguments: see there. */
  #command(what: string, uses: readonly LimitUse[], take: string): readonly string[] {
    const keys = [this.#metaKey]
    const rest: string[] = []
    for (const use of uses) {
      const name = this.#nameOf(use)
      let place = keys.indexOf(name)
      if (place === -1) place = keys.push(name) - 1
      rest.push(String(place + 1), String(use.max), String(use.windowMs * 1000), String(use.cost ?? ''))
    }
    const time = this.#clock === undefined ? '' : String(this.#clock.monotonicMs() * 1000)
    return [String(keys.length), ...keys, what, time, this.#reopenAfter, take, ...rest]
  }

  /** Returns the name of a log: of one length, and one for each window of a key. */
  #nameOf({ key, windowMs }: LimitUse): string {
    const text = `${windowMs}|${key}`
    let name = this.#names.get(text)
    if (name === undefined) {
      if (this.#names.size >= MAX_NAMES) this.#names.clear()
      // UTF-16, which is different for every text. A lone surrogate has no UTF-8.
      name = `${this.#prefix}:${hash('sha256', Buffer.from(text, 'utf16le'), 'base64url').slice(0, 22)}`
      this.#names.set(text, name)
    }
    return name
  }
}
