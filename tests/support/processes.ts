import { readdirSync, readFileSync } from 'node:fs'

/** Gives the processes below one, whatever their process group. */
export function descendantsOf(pid: number): readonly number[] {
  const children = allProcesses().filter((child) => statOf(child)?.parent === pid)
  return [...children, ...children.flatMap(descendantsOf)]
}

/** Gives the processes below this one whose command line has this text in it. */
export function ownProcesses(text: string): readonly number[] {
  return descendantsOf(process.pid).filter((pid) => commandOf(pid).includes(text))
}

/** Says whether a process runs. One that has ended and that nobody has asked about does not. */
export function isAlive(pid: number): boolean {
  const state = statOf(pid)?.state
  return state !== undefined && state !== 'Z'
}

/**
 * Sends a signal to a process and to all below it, as each process of Postgres has a group of its own. Returns a function that sends
 * the same processes another one.
 */
export function signalAll(pid: number, first: NodeJS.Signals): (signal: NodeJS.Signals) => void {
  const pids = [pid, ...descendantsOf(pid)]
  const send = (signal: NodeJS.Signals) => {
    for (const each of pids)
      try {
        process.kill(each, signal)
      } catch {
        // It has ended.
      }
  }
  send(first)
  return send
}

function allProcesses(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    // The name, in parentheses, may hold anything.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { state: fields[0] ?? '', parent: Number(fields[1]) }
  } catch {
    return undefined
  }
}
