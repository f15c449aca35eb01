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
  /** The prefix of all keys. Default `toolgate`. */
  readonly prefix?: string
  /** The time after which counting restarts by itself when Redis has lost its keys. Default: never; call `reopen`. */
  readonly reopenAfterMs?: number
  /** The longest silence of Redis before calls are refused. Default 50 ms. */
  readonly silenceMs?: number
  /**
   * Whether you confirm that a server with unreadable settings evicts nothing, and that a restart loses one second or
   * everything.
   */
  readonly statedSafe?: boolean
  /** A clock whose monotonic time is the same for all replicas. Default: the server's. */
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

/** Counters in Redis. After Redis loses its keys, each request is refused with `state_unavailable`. */
export interface RedisCounters extends CounterStore {
  /**
   * Returns the epoch, an id that changes each time the counters are opened, or `undefined` while Redis has lost its
   * keys.
   */
  readEpoch(): Promise<string | undefined>
  /** Starts to count with a Redis that is new or has lost its keys. Earlier uses no longer count. Returns the epoch. */
  reopen(): Promise<string>
  close(): void
}

/**
 * Opens counters that any number of replicas share, exact over all of them, by the server's clock.
 *
 * Neither a new Redis nor one that has lost its keys has an epoch: call `reopen` once.
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

/** Runs the script. If the server no longer has the script, it did not run, so it is loaded and run again. */
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
  /** Names of recently used keys. They are cached because a hash costs as much as all the rest. */
  readonly #names = new Map<string, string>()
  /** A random prefix of this process's take ids, so that ids of two processes never collide. */
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

  /** Returns the keys and arguments of the script, as `script.ts` describes them. */
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

  /** Returns the name of a log. It has a fixed length, and differs for each window of a key. */
  #nameOf({ key, windowMs }: LimitUse): string {
    const text = `${windowMs}|${key}`
    let name = this.#names.get(text)
    if (name === undefined) {
      if (this.#names.size >= MAX_NAMES) this.#names.clear()
      // UTF-16 differs for all texts. UTF-8 cannot encode a lone surrogate.
      name = `${this.#prefix}:${hash('sha256', Buffer.from(text, 'utf16le'), 'base64url').slice(0, 22)}`
      this.#names.set(text, name)
    }
    return name
  }
}
