import { connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerConfig } from '../../config/config.ts'
import { MAY_NOTHING } from '../../config/may.ts'
import { LOOPBACK } from '../../files.ts'
import { type Child, startChild } from './child.ts'
import { type Connection, type ConnectionHooks, seconds } from './connection.ts'
import type { RequestCredential } from './credential.ts'
import { connectHttp } from './http-connection.ts'
import type { Reaper } from '../../util/reaper.ts'
import { surroundings } from '../../util/surroundings.ts'
import { connectStdio } from './stdio-connection.ts'
import { STDERR } from './server-logs.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** A running server after its handshake. */
export interface OpenServer {
  readonly connection: Connection
  /** The last lines of its stderr, if it is a child process. */
  readonly stderrTail: () => string
  close(): Promise<void>
}

interface OpenOptions {
  readonly hooks: ConnectionHooks
  readonly reaper: Reaper
  readonly signal: AbortSignal
  /** The credential of HTTP requests, if it may change. */
  readonly credential?: RequestCredential | undefined
}

/**
 * Starts a server if it has a command, and performs the handshake. A child is stopped if the handshake fails.
 *
 * @throws {UpstreamError}
 */
export function openServer(config: ServerConfig, options: OpenOptions): Promise<OpenServer> {
  if (config.command === undefined) return openRemote(config, options)
  return config.url === undefined ? openStdio(config, options) : openLocal(config, options)
}

async function openRemote(config: ServerConfig, { hooks, signal, credential }: OpenOptions): Promise<OpenServer> {
  const { headers, era, startTimeoutMs: timeoutMs, may = MAY_NOTHING, proxy, ca } = config
  const url = parseUrl(config.url ?? '')
  const connection = await connectHttp({
    url,
    headers,
    credential,
    outbound: { proxy, ca },
    era,
    may,
    timeoutMs,
    signal,
    hooks,
    goodbye: true,
  })
  return { connection, stderrTail: () => '', close: () => connection.close() }
}

async function openStdio(config: ServerConfig, options: OpenOptions): Promise<OpenServer> {
  const { era, startTimeoutMs: timeoutMs, may = MAY_NOTHING } = config
  const { signal, hooks } = options
  const child = await startChild({
    ...toCommand(config, undefined),
    pipes: true,
    reaper: options.reaper,
    onStderr: toLog(hooks),
  })
  return openOn(child, () => connectStdio(child, { era, may, timeoutMs, signal, hooks }))
}

async function openLocal(config: ServerConfig, { hooks, reaper, signal }: OpenOptions): Promise<OpenServer> {
  const port = mentionsPort(config) ? await findFreePort() : undefined
  const url = parseUrl(fill(config.url ?? '', port))
  const startedMs = performance.now()
  const timeoutMs = () => Math.max(1, config.startTimeoutMs - (performance.now() - startedMs))
  const child = await startChild({ ...toCommand(config, port), pipes: false, reaper, onStderr: toLog(hooks) })
  return openOn(child, async () => {
    await whileAlive(child, signal, (alive) =>
      waitForPort(url.hostname, portOf(url), { timeoutMs: config.startTimeoutMs, signal: alive }),
    )
    if (config.loopback) await checkLoopback(portOf(url))
    const { headers, era, may = MAY_NOTHING, ca } = config
    const toConnection = (alive: AbortSignal) =>
      connectHttp({
        url,
        headers,
        // It is on this machine.
        outbound: { ca },
        era,
        may,
        timeoutMs: timeoutMs(),
        signal: alive,
        hooks,
        goodbye: false,
      })
    const connection = await whileAlive(child, signal, toConnection)
    void child.gone.then((reason) => hooks.onLost(new UpstreamError('upstream_down', reason)))
    return connection
  })
}

function toLog(hooks: ConnectionHooks): (line: string) => void {
  return (line) => hooks.log('debug', STDERR, line)
}

/** Returns the server once it is connected. Stops the child if connecting fails. */
async function openOn(child: Child, toConnection: () => Promise<Connection>): Promise<OpenServer> {
  try {
    const connection = await toConnection()
    const close = async () => {
      await Promise.all([connection.close(), child.stop()])
    }
    return { connection, stderrTail: child.stderrTail, close }
  } catch (error) {
    await child.stop()
    throw error
  }
}

/** Runs a step that fails as soon as the child ends, with the reason for its end. */
async function whileAlive<T>(child: Child, signal: AbortSignal, step: (alive: AbortSignal) => Promise<T>): Promise<T> {
  const died = new AbortController()
  const running = step(AbortSignal.any([signal, died.signal]))
  // If the child ends first, nothing else handles the rejection of the step.
  running.catch(() => undefined)
  return Promise.race([
    running,
    child.gone.then((reason): never => {
      died.abort()
      throw new UpstreamError('upstream_down', reason)
    }),
  ])
}

async function checkLoopback(port: number): Promise<void> {
  const address = await exposedAddress(port)
  if (address !== undefined) {
    throw new UpstreamError(
      'upstream_protocol',
      `also listens on ${address}, although it must be bound to loopback; only Node servers can be`,
    )
  }
}

function toCommand(
  config: ServerConfig,
  port: number | undefined,
): { command: string; args: string[]; cwd: string; env: Record<string, string> } {
  const env = Object.fromEntries(Object.entries(config.env).map(([name, value]) => [name, fill(value, port)]))
  return {
    command: config.command ?? '',
    args: config.args.map((arg) => fill(arg, port)),
    cwd: config.cwd ?? process.cwd(),
    env: childEnv(env, config.loopback),
  }
}

/** Returns the complete environment of a child: its surroundings, and the variables of the configuration. */
function childEnv(named: Readonly<Record<string, string>>, loopback: boolean): Record<string, string> {
  const env: Record<string, string> = { ...surroundings(), ...named }
  if (!loopback) return env
  const preload = `--import=${LOOPBACK.href}`
  return { ...env, NODE_OPTIONS: env['NODE_OPTIONS'] ? `${env['NODE_OPTIONS']} ${preload}` : preload }
}

const PORT = '${port}'

function mentionsPort({ url, args, env }: ServerConfig): boolean {
  return [url ?? '', ...args, ...Object.values(env)].some((text) => text.includes(PORT))
}

function fill(text: string, port: number | undefined): string {
  return port === undefined ? text : text.replaceAll(PORT, String(port))
}

function parseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new UpstreamError('upstream_protocol', `has an url that is not one of http or https`)
}

function portOf(url: URL): number {
  return Number(url.port || (url.protocol === 'https:' ? 443 : 80))
}

const POLL_MS = 25
const CONNECT_MS = 1_000

/** Returns a free port on loopback. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
  })
  return promise
}

/** @throws {UpstreamError} `upstream_timeout`, `aborted` */
async function waitForPort(
  host: string,
  port: number,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const deadlineMs = performance.now() + options.timeoutMs
  while (!(await listens(host, port))) {
    if (options.signal.aborted) throw new UpstreamError('aborted', 'was stopped while it started')
    if (performance.now() >= deadlineMs) {
      throw new UpstreamError('upstream_timeout', `did not listen on port ${port} in ${seconds(options.timeoutMs)}`)
    }
    await sleep(POLL_MS)
  }
}

/** Returns an address beyond loopback at which a local port is open, if there is one. */
export async function exposedAddress(port: number): Promise<string | undefined> {
  const outward = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    // A link-local address needs a zone, and every such interface also has another address.
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const open = await Promise.all(outward.map(({ address }) => listens(address, port)))
  return outward.find((_, i) => open[i])?.address
}

function listens(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, timeout: CONNECT_MS })
  const end = (open: boolean) => {
    socket.destroy()
    resolve(open)
  }
  socket.once('connect', () => end(true))
  socket.once('timeout', () => end(false))
  socket.on('error', () => end(false))
  return promise
}
