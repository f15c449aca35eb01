// Runs the tests: `node scripts/test.js [--e2e | --all | --long] [--again] [--list] [file …]`. Without a file, those of one tier:
//
//   npm test           *.test.ts and *.smoke.test.ts; properties with a tenth of their runs
//   npm run test:e2e   *.e2e.test.ts; and the properties again, in full
//   npm run test:long  all of them, *.long.test.ts too, with many more runs
//
// `--all` runs the first two at once, with the properties in full and once.
//
// Files of `*.test.ts` share a process, which is many times faster than a process each. Neighbours share one, since they
// load the same packages. Those of `*.smoke.test.ts` and `*.e2e.test.ts` start servers and children: each has a process
// of its own.
//
// An end-to-end file that fails in the second tier is run once more, alone, after all others. If it passes then, the run
// passes and names it as flaky: a defect to mend in the change that meets it. Other files are not: the failure of a
// property is an example that breaks it, and another run draws other examples.
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, cpus, freemem, tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = path.resolve(import.meta.dirname, '..')
const PATTERNS = ['packages/**/*.test.ts', 'tests/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts']
const TEST_TIMEOUT_MS = 60_000
/** A process in which no test has ended for so long hangs, or was left running by a test that did not clean up. */
const IDLE_MS = 300_000

/** How long what a test process has started may outlive it. It holds the process's output, and with it the whole run. */
const LEFT_MS = 10_000

/** Files that take longer than the rest, in seconds: they begin first, and the processes share them evenly. */
const HEAVY = new Map(
  Object.entries({
    'packages/console/test/every-page.e2e.test.ts': 120,
    'packages/console/test/console.e2e.test.ts': 90,
    'packages/console/test/scale.e2e.test.ts': 70,
    'packages/console/test/keyboard.e2e.test.ts': 60,
    'tests/forwarding.e2e.test.ts': 30,
    'tests/real/rust.e2e.test.ts': 90,
    'tests/real/python.e2e.test.ts': 60,
    'tests/real/go.e2e.test.ts': 45,
    'tests/real/npm.e2e.test.ts': 35,
    'packages/console/test/policy.e2e.test.ts': 45,
    'packages/console/test/large.e2e.test.ts': 45,
    'tests/hostile.e2e.test.ts': 45,
    'tests/replicas-partition.e2e.test.ts': 40,
    'tests/packed.e2e.test.ts': 40,
    'packages/console/test/replicas.e2e.test.ts': 40,
    'packages/stores/src/postgres/contracts.e2e.test.ts': 25,
    'packages/gateway/src/servers/lifecycle/create-upstream.e2e.test.ts': 40,
    'tests/contract.e2e.test.ts': 40,
    'scripts/replicas.e2e.test.ts': 35,
    'tests/alerts.e2e.test.ts': 33,
    'tests/replicas.e2e.test.ts': 32,
    'packages/gateway/src/admin/change/change-thread.e2e.test.ts': 32,
    'tests/claude-agent/built-ins.e2e.test.ts': 30,
    'tests/tightening.e2e.test.ts': 27,
    'tests/running.e2e.test.ts': 25,
    'tests/replicas-agents.e2e.test.ts': 25,
    'tests/conformance/conformance.e2e.test.ts': 24,
    'packages/stores/src/postgres/audit/witness.e2e.test.ts': 24,
    'tests/claude-agent/approvals.e2e.test.ts': 22,
    'tests/claude-agent/matrix.e2e.test.ts': 20,
    'tests/claude-agent/guard.e2e.test.ts': 20,
    'examples/nextjs-approval/nextjs-approval.e2e.test.ts': 21,
    'tests/replicas-start.e2e.test.ts': 20,
    'tests/replicas-people.e2e.test.ts': 20,
    'tests/reload-load.e2e.test.ts': 20,
    'packages/stores/src/jsonl.test.ts': 8,
    'packages/stores/src/sealed-inputs.test.ts': 5,
    'packages/stores/src/sqlite.test.ts': 5,
    'packages/gateway/src/admin/calls/calls.test.ts': 6,
    'tests/guide.test.ts': 6,
    'packages/gateway/src/servers/transport/http-connection.test.ts': 3,
    'packages/core/src/invariants/one-terminal-record.test.ts': 4,
    'packages/core/src/invariants/runs-in-parallel.test.ts': 4,
    'packages/core/src/invariants/failure-refuses.test.ts': 3,
    'packages/core/src/policy/condition.test.ts': 3,
    'packages/values/src/redact/linear.test.ts': 3,
    'packages/core/src/groups/availability.test.ts': 2,
  }),
)
const USUAL_WEIGHTS = { unit: 0.1, smoke: 5, e2e: 10, long: 100 }
/** The weight of a batch of the first tier: large enough that loading the packages is little of it, and small enough that the garbage collector has little to walk. */
const BATCH_WEIGHT = 12
/** How much longer a batch takes with its properties in full. */
const FULL = 4
/** As many processes run as there are cores. Tests that wait leave cores idle: then more run, up to three for each core. */
const CORES = Math.min(availableParallelism(), 8)
const MOST_EXTRA = 2 * CORES
/** Where Linux keeps files in memory, and what must be free there for the files and processes of all tests. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES = 6 * 2 ** 30
/** The share of the cores that is idle before one more process starts, and how long it is measured. */
const IDLE_SHARE = 0.3
const MEASURED_MS = 1000

const given = process.argv.slice(2)
const named = given.filter((arg) => !arg.startsWith('--'))
const long = given.includes('--long') || process.env.TOOLGATE_LONG === '1'
const tier =
  named.length > 0
    ? 'named'
    : long
      ? 'long'
      : given.includes('--e2e')
        ? 'e2e'
        : given.includes('--all')
          ? 'all'
          : 'first'
const files = tier === 'named' ? named.map((file) => path.resolve(file)) : filesOf(tier)
for (const file of files) if (!existsSync(file)) fail(`there is no file ${file}`)
const total = { passed: 0, failed: 0 }
/** The test processes that run. */
const children = new Set()
const scratch = given.includes('--list') ? undefined : scratchInMemory()
/** The seconds of each file. */
const seconds = new Map()
const SLOWEST = 8
if (given.includes('--list')) console.log(files.map((file) => path.relative(ROOT, file)).join('\n'))
else await runAll()

async function runAll() {
  const alone = files.filter((file) => kindOf(file) === 'smoke' || kindOf(file) === 'e2e')
  const collecting = files.filter((file) => !alone.includes(file) && collectsGarbage(file))
  const shared = files.filter((file) => !alone.includes(file) && !collecting.includes(file))
  const batches = [...splitByWeight(shared), ...alone.map((file) => [file])]
  if (collecting.length > 0) batches.push(collecting)
  batches.sort((a, b) => timeOf(b) - timeOf(a))
  const again = []
  await runQueue(batches, again)
  const flaky = []
  for (const file of again) if (await runOnce([file])) flaky.push(path.relative(ROOT, file))
  if (tier !== 'named') printSlowest()
  if (flaky.length > 0) console.log(`flaky, passed when run again: ${flaky.join(', ')}`)
  if (total.passed + total.failed === 0) console.error('scripts/test.js: no test ran')
  console.log(`${total.passed} passed, ${total.failed} failed`)
  process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
}

/** Returns a folder for the files of tests, which would wait for the disk; `undefined` where memory does not do. It is gone at the end. */
function scratchInMemory() {
  if (process.env.TMPDIR || !existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  if (Math.min(bavail * bsize, freemem()) < MEMORY_BYTES) return undefined
  const folder = mkdtempSync(path.join(MEMORY, 'toolgate-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      for (const child of children) child.kill()
      process.exit(1)
    })
  // Servers of tests run as another user, in folders of their own.
  chmodSync(folder, 0o711)
  const program = path.join(folder, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  return spawnSync(program).status === 0 ? folder : undefined
}

function filesOf(wanted) {
  return globSync(PATTERNS, { cwd: ROOT, exclude: (name) => name === 'node_modules' || name === 'dist' })
    .map((file) => path.join(ROOT, file))
    .filter((file) => {
      const kind = kindOf(file)
      if (wanted === 'long') return true
      if (wanted === 'first') return kind === 'unit' || kind === 'smoke'
      if (wanted === 'all') return kind !== 'long'
      return kind === 'e2e' || (kind === 'unit' && hasProperties(file))
    })
    .toSorted()
}

function kindOf(file) {
  return /\.(smoke|e2e|long)\.test\.ts$/.exec(file)?.[1] ?? 'unit'
}

/** The first tier runs these with fewer runs. */
function hasProperties(file) {
  return readFileSync(file, 'utf8').includes("testing/src/runs.ts'")
}

/** They collect the garbage of their whole process, which takes long where other files have left much. */
function collectsGarbage(file) {
  return readFileSync(file, 'utf8').includes("runInNewContext('gc')")
}

/** Splits files into batches of neighbours. */
function splitByWeight(list) {
  const count = Math.min(list.length, Math.max(CORES, Math.round(weightOf(...list) / BATCH_WEIGHT)))
  const limit = weightOf(...list) / count
  const batches = []
  for (const file of list) {
    const last = batches.at(-1)
    if (last && weightOf(...last, file) <= limit * 1.1) last.push(file)
    else batches.push([file])
  }
  return batches
}

/** Returns about how long a batch takes. Without it, a batch of properties in full would end long after all others. */
function timeOf(batch) {
  return weightOf(...batch) * (tier !== 'first' && batch.length > 1 ? FULL : 1)
}

function weightOf(...list) {
  return list.reduce((sum, file) => sum + (HEAVY.get(path.relative(ROOT, file)) ?? USUAL_WEIGHTS[kindOf(file)]), 0)
}

/** Runs batches, as many at once as keep the machine busy. Adds to `again` the files that get another run. */
async function runQueue(queue, again) {
  const extra = new Set()
  const idleShare = measureIdle()
  const measuring = setInterval(() => {
    if (idleShare() < IDLE_SHARE || extra.size === MOST_EXTRA || queue.length === 0) return
    const run = runOnce(queue.shift(), again).finally(() => extra.delete(run))
    extra.add(run)
  }, MEASURED_MS)
  const runNext = async () => {
    for (let batch = queue.shift(); batch; batch = queue.shift()) await runOnce(batch, again)
  }
  await Promise.all(Array.from({ length: CORES }, runNext))
  clearInterval(measuring)
  await Promise.all(extra)
}

/** Returns a function that returns the idle share of all cores since its last call. */
function measureIdle() {
  const read = () => cpus().map(({ times }) => times)
  const idleOf = (times) => times.reduce((sum, { idle }) => sum + idle, 0)
  const allOf = (times) => times.reduce((sum, one) => sum + Object.values(one).reduce((a, b) => a + b), 0)
  let last = read()
  return () => {
    const now = read()
    const share = (idleOf(now) - idleOf(last)) / (allOf(now) - allOf(last))
    last = now
    return share
  }
}

/** Runs a batch, counts its tests unless it gets another run, and returns whether all passed. */
async function runOnce(batch, again) {
  const startedAt = Date.now()
  const { passed, failed, output, times } = await runBatch(batch)
  const tookS = (Date.now() - startedAt) / 1000
  for (const [file, fileS] of batch.length === 1 ? [[batch[0], tookS]] : times) seconds.set(file, fileS)
  const getsAnother = failed > 0 && again !== undefined && mayRunAgain(batch)
  if (getsAnother) again.push(batch[0])
  else {
    total.passed += passed
    total.failed += failed
  }
  const what = batch.length === 1 ? path.relative(ROOT, batch[0]) : `${batch.length} files`
  const then = getsAnother ? ', and is run again after the others' : ''
  console.log(`${failed > 0 ? '✖' : '✔'} ${passed} passed, ${failed} failed: ${what} (${tookS.toFixed(1)} s)${then}`)
  if (failed > 0) console.log(failuresOf(output))
  return failed === 0
}

function mayRunAgain(batch) {
  return (
    (tier === 'e2e' || tier === 'all' || given.includes('--again')) && batch.length === 1 && kindOf(batch[0]) === 'e2e'
  )
}

function printSlowest() {
  const slowest = [...seconds].toSorted((a, b) => b[1] - a[1]).slice(0, SLOWEST)
  console.log('The slowest files, in seconds:')
  for (const [file, s] of slowest) console.log(`${s.toFixed(1).padStart(7)}  ${path.relative(ROOT, file)}`)
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
    const times = new Map()
    for (const line of lines) {
      const [, ms, file] = /^time (\S+) (.+)$/.exec(line) ?? []
      if (file) times.set(file, (times.get(file) ?? 0) + Number(ms) / 1000)
    }
    // A process that ends badly is a failure, even if every test in it had passed by then.
    return { passed, failed: Math.max(failed, problem ? 1 : 0), output, times }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function runNode(batch, results) {
  const args = [
    '--conditions=toolgate-source',
    ...(long ? [] : [`--import=${pathToFileURL(path.join(ROOT, 'scripts/one-seed.js')).href}`]),
    '--test',
    '--test-isolation=none',
    `--test-timeout=${TEST_TIMEOUT_MS * patienceWith(batch)}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${path.join(ROOT, 'scripts/test-results.js')}`,
    `--test-reporter-destination=${results}`,
    ...batch,
  ]
  const own = path.join(ROOT, 'node_modules/.bin/node')
  const env = {
    // Each process and its children load the same sources: their types are stripped once.
    NODE_COMPILE_CACHE: path.join(ROOT, 'node_modules/.cache/compile'),
    ...process.env,
    ...(scratch && { TMPDIR: scratch }),
    ...(long ? { TOOLGATE_LONG: '1' } : tier === 'first' ? { TOOLGATE_QUICK: '1' } : {}),
  }
  const child = spawn(existsSync(own) ? own : process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  })
  children.add(child)
  child.once('exit', () => children.delete(child))
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const startedAt = Date.now()
  const idleMs = IDLE_MS * patienceWith(batch)
  return new Promise((resolve) => {
    let reason
    const idle = setInterval(() => {
      const latest = existsSync(results) ? statSync(results).mtimeMs : startedAt
      if (Date.now() - latest < idleMs) return
      const names = batch.map((file) => path.relative(ROOT, file)).join(' ')
      reason = `no test ended for ${idleMs / 1000} s: one hangs or left something running, of ${names}`
      child.kill('SIGKILL')
    }, 1000)
    child.once('exit', () => {
      const left = setTimeout(() => {
        reason ??= 'a test left a program running, which holds the output'
        for (const stream of [child.stdout, child.stderr]) stream.destroy()
      }, LEFT_MS)
      child.once('close', () => clearTimeout(left))
    })
    child.once('error', (error) => resolve({ problem: error.message, output: '' }))
    child.once('close', (code, signal) => {
      clearInterval(idle)
      const problem = reason ?? (code === 0 ? undefined : `a test process ended with ${signal ?? `exit code ${code}`}`)
      resolve({ problem, output: Buffer.concat(output).toString() })
    })
  })
}

/** Long tests take minutes, also when one is run by its name. */
function patienceWith(batch) {
  return long || batch.some((file) => kindOf(file) === 'long') ? 10 : 1
}

function fail(message) {
  console.error(`scripts/test.js: ${message}`)
  process.exit(2)
}
