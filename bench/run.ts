import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Each in a process of its own: what one has compiled and kept does not help or hinder the next. */
const FILES = [
  'floors.ts',
  'decide.ts',
  'view.ts',
  'expose.ts',
  'call.ts',
  'limits.ts',
  'telemetry.ts',
  'audit.ts',
  'audit-verify.ts',
  'stores.ts',
  'redact.ts',
  'search.ts',
  'growth.ts',
  'pins.ts',
  'groups.ts',
  'planner.ts',
  'memory.ts',
  'ai-sdk.ts',
  'gateway.ts',
  'hostile.ts',
]

const asked = process.argv.slice(2)
const files = asked.length > 0 ? FILES.filter((file) => asked.includes(file.replace('.ts', ''))) : FILES
if (files.length === 0) {
  console.error(`There is no such figure. The figures are ${FILES.map((file) => file.replace('.ts', '')).join(', ')}.`)
  process.exit(2)
}
console.log(`Node ${process.version}. CPU time, medians of several rounds; differences under 1.5 times may be noise.`)
for (const file of files) {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const { status } = spawnSync(process.execPath, ['--conditions=toolgate-source', '--expose-gc', path], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exitCode = 1
}
