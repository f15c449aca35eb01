import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * Preloaded into a measured process: answers its parent with its CPU time and memory.
 *
 * The event loop is watched from the first time that `delay` is asked for, and never otherwise: watching costs CPU time.
 * Each answer to `delay` is the longest delay since the one before, and the most CPU time that this thread used in a turn.
 */
const RESOLUTION_MS = 1
let watched
let lastCpuMs = Number.POSITIVE_INFINITY
let longestCpuMs = 0

process.on('message', (asked) => process.send(asked === 'delay' ? longestDelay() : usage()))
process.channel?.unref()
process.once('disconnect', () => process.exit())

function usage() {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss() }
}

function longestDelay() {
  if (!watched) {
    watched = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    watched.enable()
    setInterval(watchCpu, RESOLUTION_MS).unref()
  }
  const ms = watched.count > 0 ? watched.max / 1e6 - RESOLUTION_MS : 0
  watched.reset()
  const cpuMs = longestCpuMs
  longestCpuMs = 0
  return { ms, cpuMs }
}

/** CPU time of this thread since the last timer: about that of one turn, as a timer runs in each turn that takes a millisecond. */
function watchCpu() {
  const { user, system } = process.threadCpuUsage()
  const nowMs = (user + system) / 1000
  longestCpuMs = Math.max(longestCpuMs, nowMs - lastCpuMs)
  lastCpuMs = nowMs
}
