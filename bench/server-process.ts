import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { toBody, toHeaders } from './wire.js'

/** What one request to a gateway is, and a text that only its right answer holds. */
export interface BenchRequest {
  readonly method: string
  readonly name?: string
  readonly params: object
  readonly key?: string
  readonly expect: string
}

export interface ServerCommand {
  /** Arguments of Node. */
  readonly args: readonly string[]
  readonly port: number
  readonly env?: Readonly<Record<string, string>>
}

export interface Usage {
  readonly cpuUs: number
  readonly rssBytes: number
}

export interface Turn {
  readonly ms: number
  readonly cpuMs: number
}

export interface ServerProcess {
  readonly pid: number
  readonly origin: string
  /** From the start of the process to its first right answer. */
  readonly startMs: number
  usage(): Promise<Usage>
  /** Returns the longest delay of its event loop since this was last asked. The first answer is 0. */
  longestDelayMs(): Promise<number>
  /** The same, with the most CPU time that its main thread used in a turn: other processes do not count. */
  longestTurn(): Promise<Turn>
  stop(): Promise<void>
}

const REPORTER = new URL('report-usage.js', import.meta.url).href
const START_TIMEOUT_MS = 60_000
const POLL_MS = 3

/** Starts a server in a process of its own, and waits until it answers. */
export async function startServer(
  { args, port, env = {} }: ServerCommand,
  first: BenchRequest,
): Promise<ServerProcess> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, ['--import', REPORTER, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const origin = `http://127.0.0.1:${port}`
  try {
    for (;;) {
      const said = await ask(origin, first)
      if (said.includes(first.expect)) break
      if (child.exitCode !== null) throw new Error(`${args.join(' ')} exited with code ${child.exitCode}`)
      if (performance.now() - startedMs > START_TIMEOUT_MS)
        throw new Error(`${args.join(' ')} does not answer rightly: ${said.slice(0, 500)}`)
      await delay(POLL_MS)
    }
  } catch (error) {
    await stop(child)
    throw error
  }
  return {
    pid: child.pid ?? 0,
    origin,
    startMs: performance.now() - startedMs,
    usage: () => askChild<Usage>(child, 'usage'),
    longestDelayMs: async () => (await askChild<Turn>(child, 'delay')).ms,
    longestTurn: () => askChild<Turn>(child, 'delay'),
    stop: () => stop(child),
  }
}

/** Sends a message to a child and gives its answer. */
export async function askChild<Answer>(child: ChildProcess, message: object | string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const exited = (): void => reject(new Error('the process ended before it answered'))
  child.once('message', resolve as (answer: unknown) => void)
  child.once('exit', exited)
  child.send(message)
  try {
    return await promise
  } finally {
    child.off('exit', exited)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const killer = setTimeout(() => child.kill('SIGKILL'), 3000)
  await exited
  clearTimeout(killer)
}

async function ask(origin: string, { method, name, params, key }: BenchRequest): Promise<string> {
  const list: readonly string[] = toHeaders(method, name, key)
  const headers = Object.fromEntries(list.flatMap((header, i) => (i % 2 === 0 ? [[header, list[i + 1] ?? '']] : [])))
  try {
    const response = await fetch(`${origin}/mcp`, { method: 'POST', headers, body: toBody(1, method, params) })
    return await response.text()
  } catch (error) {
    return String(error)
  }
}

/** Gives a port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
