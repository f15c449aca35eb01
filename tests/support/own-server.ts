import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A server process of a test's own, in a folder of its own. */
export interface OwnServer {
  readonly port: number
  readonly folder: string
  /** The process, to be paused or killed by a fault test. */
  readonly child: ChildProcess
  /** All that it has printed so far. */
  printed(): string
  /** Ends the process, and starts it again on the same port and folder. */
  restart(): Promise<void>
  /** Ends the process, and keeps its folder. */
  end(): Promise<void>
  /** Ends the process and removes the folder. */
  stop(): Promise<void>
}

export interface OwnServerOptions {
  readonly command: string
  readonly args: (at: { readonly port: number; readonly folder: string }) => readonly string[]
  /** Fills the folder before the first start: files, `initdb`. */
  readonly prepare?: (at: {
    readonly port: number
    readonly folder: string
    readonly user: RunsAs
  }) => void | Promise<void>
  /** Says that the server answers. By default once its port takes connections. */
  readonly isReady?: (at: { readonly port: number; readonly folder: string }) => Promise<boolean>
  /** Default: a free one. */
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** Runs as `nobody` where the tests run as root. Postgres refuses to run as root. */
  readonly unprivileged?: boolean
  readonly stopSignal?: NodeJS.Signals
}

/** Options of `spawn` and `execFileSync`. */
export type RunsAs = { readonly uid?: number; readonly gid?: number }

const NOBODY = 65_534
const READY_MS = 60_000
const STOP_MS = 20_000
const STEP_MS = 20
const RESTARTS = 10
const RESTART_PAUSE_MS = 200

/** Starts a server on a free port and waits until it answers. */
export async function startOwnServer(options: OwnServerOptions): Promise<OwnServer> {
  const user: RunsAs = options.unprivileged && process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-server-'))
  if (user.uid !== undefined) chownSync(folder, NOBODY, NOBODY)
  const at = { folder, port: options.port ?? (await freePort()) }
  await options.prepare?.({ ...at, user })
  const server = new OwnProcess(options, at, user)
  try {
    await server.start()
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

class OwnProcess implements OwnServer {
  readonly port: number
  readonly folder: string
  readonly #options: OwnServerOptions
  readonly #user: RunsAs
  readonly #kill = () => void this.#child?.kill('SIGKILL')
  #child: ChildProcess | undefined
  #printed = ''

  constructor(options: OwnServerOptions, at: { readonly port: number; readonly folder: string }, user: RunsAs) {
    this.#options = options
    this.port = at.port
    this.folder = at.folder
    this.#user = user
    process.once('exit', this.#kill)
  }

  get child(): ChildProcess {
    if (this.#child === undefined) throw new Error('the server was not started')
    return this.#child
  }

  printed(): string {
    return this.#printed
  }

  async start(): Promise<void> {
    const { command, args, env, isReady = takesConnections } = this.#options
    const child = spawn(command, args(this), {
      cwd: this.folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...this.#user,
    })
    this.#child = child
    const print = (chunk: Buffer) => void (this.#printed += chunk.toString())
    child.stdout.on('data', print)
    child.stderr.on('data', print)
    child.once('error', (error) => (this.#printed += String(error)))
    for (let leftMs = READY_MS; !(await isReady(this)); leftMs -= STEP_MS) {
      if (hasEnded(child) || leftMs < 0) throw new Error(`${command} does not answer:\n${this.#printed}`)
      await sleep(STEP_MS)
    }
  }

  async restart(): Promise<void> {
    await this.end()
    // Children of a killed Postgres hold its shared memory for a moment, and it does not start meanwhile.
    for (let left = RESTARTS; ; left--) {
      try {
        return await this.start()
      } catch (error) {
        if (left === 0) throw error
        await sleep(RESTART_PAUSE_MS)
      }
    }
  }

  async stop(): Promise<void> {
    await this.end()
    process.off('exit', this.#kill)
    rmSync(this.folder, { recursive: true, force: true })
  }

  async end(): Promise<void> {
    const child = this.#child
    if (child === undefined || hasEnded(child)) return
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    // A paused process does not hear a signal until it goes on.
    child.kill('SIGCONT')
    child.kill(this.#options.stopSignal ?? 'SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(late)
  }
}

/** Starts Redis without files of its own; `args` add to its command line. */
export function startRedis(command: string, args: readonly string[] = []): Promise<OwnServer> {
  const base = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction']
  return startOwnServer({ command, args: ({ port }) => [...base, '--port', String(port), ...args] })
}

/**
 * Starts Postgres with an empty database `postgres` of the user `postgres`, who needs no password; `args` add to its command line.
 * A kill of the process loses nothing, though it does not wait for the disk: the machine goes on.
 */
export function startPostgres(
  paths: { readonly postgres: string; readonly initdb: string },
  args: readonly string[] = [],
): Promise<OwnServer> {
  const data = (folder: string) => path.join(folder, 'data')
  const base = ['-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off']
  return startOwnServer({
    command: paths.postgres,
    unprivileged: true,
    stopSignal: 'SIGINT',
    prepare: ({ folder, user }) => makeDatabase(paths.initdb, data(folder), user),
    args: ({ port, folder }) => ['-D', data(folder), '-p', String(port), '-k', folder, ...base, ...args],
    isReady: postgresAnswers,
  })
}

/** Empty databases, one for each `initdb` and user. */
const DATABASES = path.join(import.meta.dirname, '../../node_modules/.cache/postgres')

/** Makes an empty database. A copy of an earlier one takes a tenth of the time of `initdb`. */
function makeDatabase(initdb: string, data: string, user: RunsAs): void {
  const kept = path.join(DATABASES, hash('sha256', `${initdb} ${statSync(initdb).mtimeMs} ${user.uid}`).slice(0, 16))
  if (existsSync(kept)) return copyFolder(kept, data)
  const args = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(initdb, args, { ...user, cwd: path.dirname(data), stdio: 'ignore' })
  const next = `${kept}.${process.pid}`
  mkdirSync(DATABASES, { recursive: true })
  copyFolder(data, next)
  try {
    renameSync(next, kept)
  } catch {
    // Another process has kept one.
    rmSync(next, { recursive: true })
  }
}

/** The files belong to the same user as before. */
function copyFolder(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}

/** Returns a port that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

function takesConnections({ port }: { readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
  })
}

/** A startup message of protocol 3.0, as `postgres`. `R` answers it once the server has started, an error before that. */
export function postgresAnswers({ port }: { readonly port: number }): Promise<boolean> {
  const parameters = Buffer.from('\0\u0003\0\0user\0postgres\0database\0postgres\0\0', 'latin1')
  const length = Buffer.alloc(4)
  length.writeUInt32BE(parameters.length + 4)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat([length, parameters])))
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', (chunk: Buffer) => done(chunk[0] === 'R'.charCodeAt(0)))
    socket.once('error', () => done(false))
    socket.once('close', () => done(false))
  })
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null
}
