// Runs the tests: `node scripts/test.js [--long] [file …]`.
//
// Files named `*.test.ts` share one process, which is many times faster than a process each. Those named
// `*.e2e.test.ts` start servers and children: each has a process of its own, one after the other.
// `--long`, or TOOLGATE_LONG=1, adds `*.long.test.ts` and tells the tests that can do more.
import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '..')
const PATTERNS = ['packages/**/*.test.ts', 'tests/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts']
const TEST_TIMEOUT_MS = 60_000
/** A process in which no test has ended for so long hangs, or was left running by a test that did not clean up. */
const IDLE_MS = 150_000

const long = process.argv.includes('--long') || process.env.TOOLGATE_LONG === '1'
const patience = long ? 10 : 1
const named = process.argv.slice(2).filter((arg) => arg !== '--long')
const files = named.length > 0 ? named.map((file) => path.resolve(file)) : findFiles()
for (const file of files) if (!existsSync(file)) fail(`there is no file ${file}`)

const e2e = files.filter((file) => file.endsWith('.e2e.test.ts'))
const unit = files.filter((file) => !e2e.includes(file))
const batches = [...(unit.length > 0 ? [unit] : []), ...e2e.map((file) => [file])]

const total = { passed: 0, failed: 0 }
// Most of an end-to-end test is waiting, so two go at a time; more would disturb each other on two cores.
await Promise.all([runQueue(batches), runQueue(batches)])
if (total.passed + total.failed === 0) console.error('scripts/test.js: no test ran')
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0

function findFiles() {
  return globSync(PATTERNS, { cwd: ROOT, exclude: (name) => name === 'node_modules' || name === 'dist' })
    .filter((file) => long || !file.endsWith('.long.test.ts'))
    .map((file) => path.join(ROOT, file))
    .toSorted()
}

/** Takes batches from a queue that others take from too, until it is empty. */
async function runQueue(queue) {
  for (let batch = queue.shift(); batch; batch = queue.shift()) {
    const startedAt = Date.now()
    const { passed, failed, output } = await runBatch(batch)
    total.passed += passed
    total.failed += failed
    const what = batch.length === 1 ? path.relative(ROOT, batch[0]) : `${batch.length} files`
    console.log(
      `${failed > 0 ? '✖' : '✔'} ${passed} passed, ${failed} failed: ${what} (${((Date.now() - startedAt) / 1000).toFixed(1)} s)`,
    )
    if (failed > 0) console.log(failuresOf(output))
  }
}

/** What the reporter says of failures, without the list of what passed; all of it where the process died before that. */
function failuresOf(output) {
  const start = output.indexOf('✖ failing tests:')
  return start === -1 ? output : output.slice(start)
}

async function runBatch(batch) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-test-'))
  const results = path.join(folder, 'results')
  try {
    const { problem, output } = await runNode(batch, results)
    if (problem) console.error(`scripts/test.js: ${problem}`)
    const lines = existsSync(results) ? readFileSync(results, 'utf8').split('\n') : []
    const passed = lines.filter((line) => line.startsWith('pass ')).length
    const failed = lines.filter((line) => line.startsWith('fail ')).length
    // A process that ends badly is a failure, even if every test in it had passed by then.
    return { passed, failed: Math.max(failed, problem ? 1 : 0), output }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function runNode(batch, results) {
  const args = [
    '--conditions=toolgate-source',
    '--test',
    '--test-isolation=none',
    `--test-timeout=${TEST_TIMEOUT_MS * patience}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${path.join(ROOT, 'scripts/test-results.js')}`,
    `--test-reporter-destination=${results}`,
    ...batch,
  ]
  const own = path.join(ROOT, 'node_modules/.bin/node')
  const env = long ? { ...process.env, TOOLGATE_LONG: '1' } : process.env
  const child = spawn(existsSync(own) ? own : process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const startedAt = Date.now()
  return new Promise((resolve) => {
    let reason
    const idle = setInterval(() => {
      const latest = existsSync(results) ? statSync(results).mtimeMs : startedAt
      if (Date.now() - latest < IDLE_MS * patience) return
      const names = batch.map((file) => path.relative(ROOT, file)).join(' ')
      reason = `no test ended for ${(IDLE_MS * patience) / 1000} s: one hangs or left something running, of ${names}`
      child.kill('SIGKILL')
    }, 1000)
    child.once('error', (error) => resolve({ problem: error.message, output: '' }))
    child.once('close', (code, signal) => {
      clearInterval(idle)
      const problem = reason ?? (code === 0 ? undefined : `a test process ended with ${signal ?? `exit code ${code}`}`)
      resolve({ problem, output: Buffer.concat(output).toString() })
    })
  })
}

function fail(message) {
  console.error(`scripts/test.js: ${message}`)
  process.exit(2)
}
