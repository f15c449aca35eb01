import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '@toolgate/values/json'
import { RPC_CODES } from '@toolgate/mcp'
import type { Connection } from '../transport/connection.ts'
import { LIMITS } from '../transport/limits.ts'
import { UpstreamError } from '../../model/upstream.ts'

const TOGETHER_MS = 5

/** Called after a change of the resource. */
type Listener = () => void

/**
 * The watched resources of a server. The gateway subscribes once for each resource, whatever the number of listeners,
 * and again after a new handshake.
 */
export class ResourceWatches {
  readonly #server: string
  readonly #timeoutMs: number
  readonly #watched = new Map<string, Set<Listener>>()
  #connection: Connection | undefined
  #opening: Promise<void> | undefined

  constructor(server: string, timeoutMs: number) {
    this.#server = server
    this.#timeoutMs = timeoutMs
  }

  /** Calls the listener after each announced change, until the returned function is called. @throws {UpstreamError} */
  async add(uri: string, listener: Listener): Promise<() => void> {
    const connection = this.#connection
    if (!connection) throw new UpstreamError('upstream_down', `server "${this.#server}" is not running`)
    if (!announcesResources(connection)) throw this.#refused('does not announce changes of its resources')
    let listeners = this.#watched.get(uri)
    if (!listeners) {
      if (this.#watched.size >= LIMITS.watchedResources) throw this.#refused('has too many subscriptions')
      this.#watched.set(uri, (listeners = new Set()))
    }
    const isFirst = listeners.size === 0
    const own = () => listener()
    listeners.add(own)
    const remove = () => this.#remove(uri, own)
    try {
      if (isFirst) await this.#begin(connection, uri)
      return remove
    } catch (error) {
      remove()
      throw error
    }
  }

  /** Handles an announcement from the server. */
  updated(uri: unknown): void {
    if (typeof uri === 'string') for (const listener of this.#watched.get(uri) ?? []) listener()
  }

  /** Subscribes again on a connection that has completed its handshake. */
  connected(connection: Connection): void {
    this.#connection = connection
    if (this.#watched.size === 0 || !announcesResources(connection)) return
    if (connection.watch) return void this.#watchAll(connection.watch).catch(ignore)
    for (const uri of this.#watched.keys()) this.#begin(connection, uri).catch(ignore)
  }

  lost(): void {
    this.#connection = undefined
  }

  #remove(uri: string, listener: Listener): void {
    const listeners = this.#watched.get(uri)
    listeners?.delete(listener)
    if (listeners?.size !== 0) return
    this.#watched.delete(uri)
    const connection = this.#connection
    if (!connection || !announcesResources(connection)) return
    if (connection.watch) this.#watchAll(connection.watch).catch(ignore)
    else connection.request('resources/unsubscribe', { uri }, { timeoutMs: this.#timeoutMs }).catch(ignore)
  }

  async #begin(connection: Connection, uri: string): Promise<void> {
    if (connection.watch) return this.#watchAll(connection.watch)
    await connection.request('resources/subscribe', { uri }, { timeoutMs: this.#timeoutMs })
  }

  /** Opens the one stream for all resources. Simultaneous requests open it once. */
  #watchAll(watch: NonNullable<Connection['watch']>): Promise<void> {
    this.#opening ??= sleep(TOGETHER_MS).then(() => {
      this.#opening = undefined
      return watch([...this.#watched.keys()])
    })
    return this.#opening
  }

  #refused(problem: string): UpstreamError {
    const message = `server "${this.#server}" ${problem}`
    return new UpstreamError('upstream_rpc', message, { rpc: { code: RPC_CODES.methodNotFound, message } })
  }
}

function announcesResources({ capabilities: { resources } }: Connection): boolean {
  return isObject(resources) && resources['subscribe'] === true
}

function ignore(): undefined {
  return undefined
}
