import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { surroundings } from './surroundings.ts'

/** Keeps process groups from outliving this process. */
export interface ProcessWatch {
  watch(pid: number): void
  release(pid: number): void
}

interface BoundedCommand {
  readonly argv: readonly [string, ...string[]]
  readonly cwd?: string | undefined
  /** The environment variables of the command, besides its surroundings. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** The stream that is read. The other one is discarded. */
  readonly reads: 'stdout' | 'stderr'
  /** The maximum output in bytes. More output ends the command. */
  readonly maxBytes: number
  /** The number of bytes to keep from the end of the output. */
  readonly keepBytes: number
  /** Ends the command when it aborts. */
  readonly signal: AbortSignal
  /** Kills the command's process group when this process is gone. */
  readonly reaper?: ProcessWatch | undefined
}

/** How a command ended. */
export interface CommandEnd {
  /** Why it failed, as a clause: `exits with code 1`. It contains no output. Absent for exit code 0. */
  readonly problem?: string
  readonly output: Buffer
  /** Whether the beginning of the output was dropped. */
  readonly isCut: boolean
}

/** How long to read the output of a failed command. */
const DRAIN_MS = 100

/**
 * Runs a command without a shell, and kills its process group when it ends.
 *
 * If the command succeeds, its stdout is read to the end. If a process outside of the group keeps it open, this waits
 * until `signal` aborts. Never rejects.
 */
export function runBounded(command: BoundedCommand): Promise<CommandEnd> {
  const { argv, cwd, env = {}, reads, reaper, signal } = command
  const { promise, resolve } = Promise.withResolvers<CommandEnd>()
  if (signal.aborted) return Promise.resolve(ENDED)
  const [program, ...args] = argv
  const child = spawn(program, args, {
    cwd,
    env: { ...surroundings(), ...env },
    detached: true,
    shell: false,
    stdio: ['ignore', reads === 'stdout' ? 'pipe' : 'ignore', reads === 'stderr' ? 'pipe' : 'ignore'],
  })
  const { pid } = child
  if (pid !== undefined) reaper?.watch(pid)
  const output = collect(child, command, () => settle(`writes more than ${sizeOf(command.maxBytes)}`))
  const onAbort = () => settle(ENDED.problem)
  signal.addEventListener('abort', onAbort, { once: true })
  child.once('error', (error: NodeJS.ErrnoException) => settle(whyNotStarted(error, cwd)))
  child.once('exit', (code, killedBy) => {
    if (pid !== undefined) killGroup(pid)
    const how = killedBy ? `was ended by ${killedBy}` : code === 0 ? undefined : `exits with code ${code}`
    // The stderr of a command matters only if the command fails.
    if (how === undefined && reads === 'stderr') return settle(undefined)
    child.once('close', () => settle(how))
    if (how !== undefined) setTimeout(() => settle(how), DRAIN_MS).unref()
  })
  return promise

  function settle(problem: string | undefined): void {
    signal.removeEventListener('abort', onAbort)
    // The whole group is killed, as the command may have left processes running.
    if (pid !== undefined) {
      killGroup(pid)
      reaper?.release(pid)
    }
    child.stdout?.destroy()
    child.stderr?.destroy()
    resolve({ ...(problem === undefined ? {} : { problem }), ...output() })
  }
}

const ENDED = { problem: 'was ended at its deadline', output: Buffer.alloc(0), isCut: false } as const

/** Reads the output and keeps its end. */
function collect(
  { stdout, stderr }: ChildProcess,
  { maxBytes, keepBytes }: BoundedCommand,
  onFlood: () => void,
): () => Pick<CommandEnd, 'output' | 'isCut'> {
  let kept: Buffer = Buffer.alloc(0)
  let bytes = 0
  const stream = stdout ?? stderr
  stream?.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    kept = Buffer.from(Buffer.concat([kept, chunk]).subarray(-keepBytes))
    if (bytes > maxBytes) onFlood()
  })
  stream?.on('error', () => undefined)
  return () => ({ output: kept, isCut: bytes > keepBytes })
}

function sizeOf(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`
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
    // The whole group has already ended.
  }
}
