import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Each in a process of its own: what one has compiled and kept does not help or hinder the next. */
const FILES = [
  'floors.ts',
  'decide.ts',
  'view.ts',
  'expose.ts',
  'call.ts',
  'shadow.ts',
  'limits.ts',
  'telemetry.ts',
  'audit.ts',
  'audit-replicas.ts',
  'audit-verify.ts',
  'stores.ts',
  'replicas.ts',
  'replicas-stores.ts',
  'replicas-hop.ts',
  'redact.ts',
  'origins.ts',
  'history.ts',
  'what-if.ts',
  'changes.ts',
  'oauth.ts',
  'people.ts',
  'reload.ts',
  'search.ts',
  'growth.ts',
  'pins.ts',
  'groups.ts',
  'planner.ts',
  'memory.ts',
  'ai-sdk.ts',
  'gateway.ts',
  'stdio.ts',
  'hostile.ts',
]
/** Run only when they are named: `peers` installs other gateways, `agentdojo` needs a file of traces, `console` a browser. */
const NAMED_ONLY = ['peers.ts', 'agentdojo.ts', 'console.ts', 'console-frames.ts']

const args = process.argv.slice(2)
const firstOption = args.findIndex((arg) => arg.startsWith('--'))
const asked = firstOption === -1 ? args : args.slice(0, firstOption)
const options = firstOption === -1 ? [] : args.slice(firstOption)
const known = [...FILES, ...NAMED_ONLY]
const files = asked.length > 0 ? known.filter((file) => asked.some((name) => isOf(file, name))) : FILES
if (files.length === 0) {
  console.error(`There is no such figure. The figures are ${known.map((file) => file.replace('.ts', '')).join(', ')}.`)
  process.exit(2)
}
/** A name is that of a file, or of several: `replicas` is also `replicas-stores.ts`. */
function isOf(file: string, name: string): boolean {
  return file === `${name}.ts` || file.startsWith(`${name}-`)
}
console.log(`Node ${process.version}. CPU time, medians of several rounds; differences under 1.5 times may be noise.`)
for (const file of files) {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const { status } = spawnSync(process.execPath, ['--conditions=toolgate-source', '--expose-gc', path, ...options], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exitCode = 1
}
