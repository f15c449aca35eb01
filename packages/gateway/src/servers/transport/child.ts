import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { errnoOf, messageOf } from '@toolgate/values'

import { createFloodGuard, FLOOD } from './limits.ts'
import type { Reaper } from '../../util/reaper.ts'
import { StderrTail } from './stderr-tail.ts'
import { UpstreamError } from '../../model/upstream.ts'

/**
 * The time from closing stdin to SIGTERM, so that a server still reads cancellations (MCP 2025-11-25, stdio,
 * "shutdown").
 */
const GOODBYE_MS = 300
/** The time from SIGTERM to SIGKILL. */
const TERM_MS = 1_000
/** How long to read the output of a child that has ended. */
const DRAIN_MS = 100

/** A child process with its own process group, so that its descendants end with it. */
export interface Child {
  readonly pid: number
  /** Absent unless it was started with `pipes`. */
  readonly stdin: Writable | null
  readonly stdout: Readable | null
  /** Why the child has ended, without a full stop: `exited with code 1 (Error: no such folder)`. */
  readonly gone: Promise<string>
  /** Returns the last lines of stderr. */
  readonly stderrTail: () => string
  /** Ends the process group: it closes stdin, sends SIGTERM soon after, and SIGKILL after a second. */
  stop(): Promise<void>
}

interface ChildOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** The complete environment of the child. */
  readonly env: Readonly<Record<string, string>>
  /** Whether to connect stdin and stdout. Otherwise the child has neither. */
  readonly pipes: boolean
  readonly reaper: Reaper
  /** Called with each line of stderr. */
  readonly onStderr?: (line: string) => void
}

/** @throws {UpstreamError} `upstream_down` for a command that cannot be started */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { command, args, cwd, env, pipes, reaper, onStderr } = options
  reaper.start()
  const stdio = pipes ? 'pipe' : 'ignore'
  try {
    const child = spawn(command, args, { cwd, env, detached: true, stdio: [stdio, stdio, 'pipe'] })
    const { pid } = child
    if (pid !== undefined) reaper.watch(pid)
    await spawned(child)
    if (pid === undefined) throw new Error('it has no process id')
    if (onStderr) readLines(child.stderr, onStderr)
    return supervise(child, pid, reaper)
  } catch (error) {
    throw new UpstreamError('upstream_down', whyNotStarted(error, command, cwd), {
      cause: error,
    })
  }
}

function spawned(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('spawn', resolve)
  child.on('error', reject)
  return promise
}

function whyNotStarted(error: unknown, command: string, cwd: string): string {
  const code = errnoOf(error)
  if (code === 'ENOENT' && !existsSync(cwd)) return `folder "${cwd}" does not exist`
  if (code === 'ENOENT') return `command "${command}" was not found`
  if (code === 'EACCES') return `command "${command}" may not be executed`
  return `command "${command}" could not be started (${code ?? messageOf(error)})`
}

function supervise(child: ChildProcess, pid: number, reaper: Reaper): Child {
  let flooded = false
  const stderr = keepTail(child.stderr, () => {
    flooded = true
    signalGroup(pid, 'SIGKILL')
  })
  // A child that has ended closes its pipe. Its exit provides the reason.
  child.stdin?.on('error', () => undefined)
  const gone = exited(child).then((how) => {
    const { reason } = stderr
    if (flooded) return `wrote ${FLOOD} to stderr`
    return reason ? `${how} (${reason})` : how
  })
  let stopping: Promise<void> | undefined
  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    gone,
    stderrTail: () => stderr.text,
    stop: () => (stopping ??= stopGroup(child, pid, gone).finally(() => reaper.release(pid))),
  }
}

/** Reads stderr and keeps its end. Without a reader, a child would block. */
function keepTail(stream: Readable | null, onFlood: () => void): StderrTail {
  const flood = createFloodGuard(() => performance.now())
  const tail = new StderrTail()
  stream?.on('data', (chunk: Buffer) => {
    tail.add(chunk)
    if (flood.add(chunk.length)) onFlood()
  })
  stream?.on('error', () => undefined)
  return tail
}

/** A longer line is cut at this length. */
const MAX_LINE_CHARS = 4_000

function readLines(stream: Readable | null, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream?.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') onLine(line)
    if (rest.length > MAX_LINE_CHARS) {
      onLine(rest)
      rest = ''
    }
  })
  stream?.on('close', () => {
    if (rest.trim() !== '') onLine(rest)
    rest = ''
  })
}

async function exited(child: ChildProcess): Promise<string> {
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>()
  child.once('exit', (code, signal) => end(signal ? `was ended by ${signal}` : `exited with code ${code}`))
  child.once('close', () => drain())
  const how = await ended
  // Descendants may keep the pipes open for long.
  await Promise.race([drained, sleep(DRAIN_MS)])
  // If this process was paused, the timer fires before the pending output is read.
  await turn()
  return how
}

async function stopGroup(child: ChildProcess, pid: number, gone: Promise<string>): Promise<void> {
  if (child.stdin) {
    child.stdin.end()
    await groupEnds(pid, GOODBYE_MS)
  }
  signalGroup(pid, 'SIGTERM')
  await groupEnds(pid, TERM_MS)
  signalGroup(pid, 'SIGKILL')
  await Promise.race([gone, sleep(500, undefined, { ref: false })])
  child.stdout?.destroy()
  child.stderr?.destroy()
}

async function groupEnds(pid: number, withinMs: number): Promise<void> {
  const deadlineMs = performance.now() + withinMs
  while (groupLives(pid) && performance.now() < deadlineMs) await sleep(10)
}

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

function groupLives(pid: number): boolean {
  return signalGroup(pid, 0)
}
