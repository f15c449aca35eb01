import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts in these, whatever its kernel was built with. */
const TICK_US = 10_000

/** Returns the CPU time of a process and of all its children, those that have ended too, as the kernel counts it. */
export function cpuUsOf(pid: number): number {
  const own = statOf(pid)
  const children = readdirSync('/proc').flatMap((entry) => {
    const stat = /^\d+$/.test(entry) ? statOf(Number(entry)) : undefined
    return stat?.parent === pid ? [stat] : []
  })
  const ended = own?.childTicks ?? 0
  const live = [own, ...children].reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0)
  return (live + ended) * TICK_US
}

function statOf(pid: number) {
  try {
    // The name may hold spaces and brackets. What follows it does not.
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const at = (place: number): number => Number(fields[place])
    return { parent: at(1), ticks: at(11) + at(12), childTicks: at(13) + at(14) }
  } catch {
    return undefined
  }
}
