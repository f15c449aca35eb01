import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * Preloaded into a measured process: answers its parent with its CPU time and memory.
 *
 * The event loop is watched from the first time that `delay` is asked for, and never otherwise: watching costs CPU time.
 * Each answer to `delay` is the longest delay since the one before.
 */
const RESOLUTION_MS = 1
let watched

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
  }
  const ms = watched.count > 0 ? watched.max / 1e6 - RESOLUTION_MS : 0
  watched.reset()
  return { ms }
}
