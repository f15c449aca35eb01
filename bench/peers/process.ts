import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** A program that was started, with the processes that it started itself. */
export class Program {
  readonly startedMs: number = performance.now()
  static readonly #all = new Set<Program>()
  readonly #child: ChildProcess
  #output = ''

  constructor(args: readonly string[], env: Readonly<Record<string, string>>, cwd: string) {
    this.#child = spawn(process.execPath, args, {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that its children end with it.
      detached: true,
    })
    Program.#all.add(this)
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#output = (this.#output + chunk.toString()).slice(-2000)))
  }

  /** Ends every program that still runs, at once. */
  static killAll(): void {
    for (const program of Program.#all) program.#signal('SIGKILL')
  }

  /** Throws if it has ended, with the end of its output. */
  check(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null)
      throw new Error(`it ended with ${this.#child.exitCode ?? this.#child.signalCode}: ${this.#output}`)
  }

  /** CPU time so far, of all its processes. */
  cpuUs(): number {
    return sum(this.#pids().map(cpuUsOf))
  }

  /** Resident memory of all its processes. */
  rssMb(): number {
    return sum(this.#pids().map(rssOf))
  }

  async stop(): Promise<void> {
    this.#signal('SIGTERM')
    for (
      let leftMs = STOP_MS;
      leftMs > 0 && this.#child.exitCode === null && this.#child.signalCode === null;
      leftMs -= 20
    )
      await delay(20)
    this.#signal('SIGKILL')
    Program.#all.delete(this)
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal)
    } catch {
      // The group has ended.
    }
  }

  #pids(): readonly number[] {
    return this.#child.pid === undefined ? [] : withChildren(this.#child.pid)
  }
}

const STOP_MS = 3000

function withChildren(pid: number): readonly number[] {
  const children = namesIn(`/proc/${pid}/task`).flatMap((task) =>
    textOf(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(withChildren)]
}

/** Adds up the threads, as the kernel counts those in nanoseconds. A Node process ends none of its own before it ends. */
function cpuUsOf(pid: number): number {
  const threads = namesIn(`/proc/${pid}/task`)
  return sum(threads.map((thread) => Number(textOf(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0) / 1000))
}

function rssOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) / 1024
}

/** A process may end at any time. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
