import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Probe, ProbeAnswer, ProbeAsking } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/core/internal'
import { redactor, type Redactor } from '@toolgate/core/redact'
import type { ProbeOptions } from './network-probes.ts'

export interface CommandProbeOptions extends ProbeOptions {
  /** Default: this process's. */
  readonly cwd?: string | undefined
  /** Its variables, besides PATH and HOME. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Redacts its output. Default: the built-in one. */
  readonly redactor?: Redactor | undefined
  /** Kills its process group when this process is gone. */
  readonly reaper?: ProcessWatch | undefined
}

/** Keeps process groups from outliving this process. */
export interface ProcessWatch {
  watch(pid: number): void
  release(pid: number): void
}

const OPTIONS = shapeOf<CommandProbeOptions>({ timeoutMs: true, cwd: true, env: true, redactor: true, reaper: true })
const MAX_STDERR_BYTES = 1024 * 1024
const TAIL_BYTES = 2048
const MAX_DETAIL_CHARS = 300
const DEFAULT_TIMEOUT_MS = 5000
/** How long to read the output of a command that has ended. */
const DRAIN_MS = 100

/**
 * Returns a probe that runs a command and checks for exit code 0. There is no shell. At the deadline the command is
 * killed. Its child processes are killed when it ends.
 *
 * @example
 * commandProbe(['docker', 'info', '--format', '{{.ID}}'], { timeoutMs: 3000 })
 */
export function commandProbe(argv: readonly [string, ...string[]], options: CommandProbeOptions = {}): Probe {
  checkShape('commandProbe', options, OPTIONS)
  const { timeoutMs = DEFAULT_TIMEOUT_MS, cwd, env = {} } = options
  const name = path.basename(argv[0])
  return {
    key: `command ${JSON.stringify([argv, cwd ?? null, Object.entries(env)])}`,
    kind: 'command',
    what: `the command ${name}`,
    timeoutMs,
    isHeavy: true,
    ask: (asking) => run(argv, options, asking),
  }
}

function run(
  [command, ...args]: readonly [string, ...string[]],
  { cwd, env = {}, redactor: redact = redactor, reaper }: CommandProbeOptions,
  { signal }: ProbeAsking,
): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>()
  const name = path.basename(command)
  const child = spawn(command, args, {
    cwd,
    env: { ...bareEnv(), ...env },
    detached: true,
    shell: false,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { pid } = child
  if (pid !== undefined) reaper?.watch(pid)
  const tail = keepTail(child, () => settle(no(name, 'writes more than 1 MB of errors')))
  const onAbort = () => settle(no(name, 'was ended at its deadline'))
  signal.addEventListener('abort', onAbort, { once: true })
  child.once('error', (error: NodeJS.ErrnoException) => settle(no(name, whyNotStarted(error, cwd))))
  child.once('exit', (code, killedBy) => {
    if (code === 0) return settle(true)
    if (pid !== undefined) killGroup(pid)
    const how = killedBy ? `was ended by ${killedBy}` : `exits with code ${code}`
    const end = () => settle(no(name, how, lastLine(tail(), redact)))
    child.once('close', end)
    // A process outside of the group may hold the pipe open forever.
    setTimeout(end, DRAIN_MS).unref()
  })
  return promise

  function settle(answer: ProbeAnswer): void {
    signal.removeEventListener('abort', onAbort)
    // The whole group, as the command may have left processes running.
    if (pid !== undefined) {
      killGroup(pid)
      reaper?.release(pid)
    }
    child.stderr?.destroy()
    resolve(answer)
  }
}

function no(name: string, how: string, detail = ''): ProbeAnswer {
  return { available: false, reason: `the command ${name} ${how}`, ...(detail === '' ? {} : { detail }) }
}

/** Reads stderr and keeps its end. A command that never stops writing is killed. */
function keepTail(child: ChildProcess, onFlood: () => void): () => string {
  let tail: Buffer = Buffer.alloc(0)
  let bytes = 0
  child.stderr?.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    tail = Buffer.from(Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES))
    if (bytes > MAX_STDERR_BYTES) onFlood()
  })
  child.stderr?.on('error', () => undefined)
  // A line whose beginning is lost is left out, as it may be the second half of a secret.
  return () => (bytes > TAIL_BYTES ? tail.subarray(tail.indexOf(10) + 1 || tail.length) : tail).toString()
}

/** Redacts before cutting, so that no half of a secret is left. */
function lastLine(stderr: string, { redactText }: Redactor): string {
  const lines = redactText(stderr).split('\n')
  return (lines.findLast((line) => line.trim() !== '') ?? '').trim().slice(0, MAX_DETAIL_CHARS)
}

function whyNotStarted({ code, message }: NodeJS.ErrnoException, cwd: string | undefined): string {
  if (code === 'ENOENT' && cwd !== undefined && !existsSync(cwd)) return 'cannot be started: its folder is not there'
  if (code === 'ENOENT') return 'is not found'
  if (code === 'EACCES') return 'may not be executed'
  return `cannot be started (${code ?? message})`
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended already.
  }
}

function bareEnv(): Record<string, string> {
  const { PATH, HOME } = process.env
  return { ...(PATH === undefined ? {} : { PATH }), ...(HOME === undefined ? {} : { HOME }) }
}
