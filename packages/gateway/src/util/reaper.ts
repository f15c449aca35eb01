import { type ChildProcess, spawn } from 'node:child_process'
import { isObject } from '@toolgate/values/json'

/**
 * Kills the process groups of children when this process is gone, even after `kill -9`.
 *
 * A `sh` in its own process group reads `+ PID` and `- PID`. When this process ends, the kernel
 * closes the pipe, and the shell kills the groups that it watches.
 */
export interface Reaper {
  /** Starts the shell if it is not running. Call it before starting a child. */
  start(): void
  /** Watches the process group that `pid` leads. */
  watch(pid: number): void
  release(pid: number): void
  /** Ends the shell, which kills the groups that it still watches. */
  close(): Promise<void>
}

const MIN_LIFE_MS = 1_000

/** `kill -s TERM -- -PID` is the only spelling for a group that dash accepts. */
const SCRIPT = `
trap '' INT TERM HUP
pids=
while read -r mark pid; do
  case $mark in
    +) pids="$pids $pid" ;;
    -) kept=
       for known in $pids; do [ "$known" = "$pid" ] || kept="$kept $known"; done
       pids=$kept ;;
  esac
done
[ -n "$pids" ] || exit 0
for pid in $pids; do kill -s TERM -- "-$pid"; done 2>/dev/null
sleep 1
for pid in $pids; do kill -s KILL -- "-$pid"; done 2>/dev/null
`

/**
 * Returns a reaper. Its shell starts at the first use, and restarts if it is killed.
 *
 * On a machine without `sh` it does nothing.
 */
export function createReaper(): Reaper {
  const watched = new Set<number>()
  let shell: ChildProcess | undefined
  let closed = false

  return {
    start,
    watch(pid) {
      watched.add(pid)
      // A new shell receives all groups, including this one.
      if (shell) send('+', pid)
      else start()
    },
    release(pid) {
      if (watched.delete(pid)) send('-', pid)
    },
    close,
  }

  function start(): void {
    if (shell || closed) return
    const started = spawn('sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: bareEnv() })
    shell = started
    started.on('error', () => forget(started))
    const startedMs = performance.now()
    started.on('exit', () => {
      forget(started)
      // A shell that ends at once is not restarted.
      if (watched.size > 0 && performance.now() - startedMs > MIN_LIFE_MS) start()
    })
    // The pipe may close before the exit event.
    started.stdin.on('error', () => undefined)
    started.unref()
    unrefStream(started.stdin)
    for (const pid of watched) send('+', pid)
  }

  function forget(ended: ChildProcess): void {
    if (shell === ended) shell = undefined
  }

  function send(mark: '+' | '-', pid: number): void {
    shell?.stdin?.write(`${mark} ${pid}\n`)
  }

  async function close(): Promise<void> {
    closed = true
    const ending = shell
    if (!ending || ending.exitCode !== null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    ending.ref()
    ending.once('exit', () => resolve())
    ending.once('error', () => resolve())
    ending.stdin?.end()
    await promise
  }
}

/** Lets this process end although the pipe to the shell is open. */
function unrefStream(stream: unknown): void {
  if (isObject(stream) && typeof stream['unref'] === 'function') stream['unref']()
}

function bareEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] }
}
