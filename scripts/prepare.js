// Makes a clone ready to run: `node scripts/prepare.js [--dev] [--console] [--harness] [--no-install]`.
//
// Runs before anything is installed, so it is plain JavaScript without dependencies, for Node 20 and later.
// It installs with npm when the lock file is not the one that is installed (with --no-install it leaves the packages as
// they are: a test passes it), with --console builds the web console when its sources have changed, and with --harness
// installs what only end-to-end tests have: the Claude Agent SDK, whose binary is large, two versions of the referee of
// MCP, servers of npm, Genkit, the servers of frameworks, and Node 22. When there is nothing to do it says nothing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(fileURLToPath(import.meta.url), '../..')
const LOCK_FILE = path.join(ROOT, 'package-lock.json')
const INSTALLED = path.join(ROOT, 'node_modules/.package-lock.json')
const INSTALL_STAMP = path.join(ROOT, 'node_modules/.toolgate-install')
const CONSOLE = path.join(ROOT, 'packages/console')
const CONSOLE_OUT = path.join(ROOT, 'packages/gateway/console')
const CONSOLE_STAMP = path.join(CONSOLE_OUT, '.stamp')
const HARNESSES = [
  { folder: path.join(ROOT, 'tests/claude-agent'), what: 'the Claude Agent SDK for its tests (370 MB)' },
  { folder: path.join(ROOT, 'tests/conformance'), what: 'the referee of MCP for the conformance tests (50 MB)' },
  {
    folder: path.join(ROOT, 'tests/real/npm'),
    what: 'servers of npm and an early SDK for the tests of real ones (110 MB)',
  },
  { folder: path.join(ROOT, 'examples/genkit'), what: 'Genkit for its example (90 MB)' },
  { folder: path.join(ROOT, 'examples/mastra-server'), what: 'Mastra’s server for its example (40 MB)' },
  { folder: path.join(ROOT, 'examples/langgraph-server'), what: 'LangGraph’s server for its example (75 MB)' },
  { folder: path.join(ROOT, 'examples/nextjs-approval'), what: 'Next.js for its example (370 MB)' },
  { folder: path.join(ROOT, 'tests/node22'), what: 'Node 22 for the test of the packages (190 MB)' },
]
const BUSY = path.join(ROOT, '.toolgate/prepare.lock')

const POLL_MS = 200
/** A test passes a shorter time. */
const PROGRESS_MS = Number(process.env.TOOLGATE_PROGRESS_MS ?? 10_000)
/** npm writes the two lock files one after the other. */
const INSTALL_SLACK_MS = 10_000

/** Without it only what the programs need: what tests and benches need is several times as much. */
const wantsDev = process.argv.includes('--dev')
const steps = process.argv.includes('--no-install') ? [] : [{ isDue: isInstallDue, run: install }]
if (process.argv.includes('--console')) steps.push({ isDue: isConsoleDue, run: buildConsole })
if (process.argv.includes('--harness')) {
  for (const harness of HARNESSES)
    steps.push({ isDue: () => isHarnessDue(harness), run: () => installHarness(harness) })
}

if (steps.some((step) => step.isDue())) {
  await alone(async () => {
    for (const step of steps) if (step.isDue()) await step.run()
  })
}

function isInstallDue() {
  if (!existsSync(INSTALLED)) return true
  const hash = hashOf([LOCK_FILE])
  const stamp = readText(INSTALL_STAMP)
  if (stamp !== undefined) return stamp !== `${hash} dev` && (wantsDev || stamp !== hash)
  // Somebody ran npm by hand: trust it if that was after the lock file was written.
  if (statSync(INSTALLED).mtimeMs + INSTALL_SLACK_MS < statSync(LOCK_FILE).mtimeMs) return true
  writeFileSync(INSTALL_STAMP, `${hash} dev`)
  return false
}

async function install() {
  console.log('Installing what package-lock.json names (npm ci) …')
  // Warnings are about the Node that npm runs on, which the packages replace.
  const args = ['ci', ...(wantsDev ? [] : ['--omit=dev']), '--no-audit', '--no-fund', '--loglevel=error']
  await run('npm', args, ROOT, packagesThere)
  writeFileSync(INSTALL_STAMP, `${hashOf([LOCK_FILE])}${wantsDev ? ' dev' : ''}`)
}

/** Says how many of the packages are there. */
function packagesThere() {
  const { packages } = JSON.parse(readFileSync(LOCK_FILE, 'utf8'))
  const wanted = Object.entries(packages).filter(
    ([at, { dev, optional }]) => at.startsWith('node_modules/') && !optional && (wantsDev || !dev),
  )
  const there = wanted.filter(([at]) => existsSync(path.join(ROOT, at, 'package.json')))
  return `${there.length} of ${wanted.length} packages`
}

function isHarnessDue({ folder }) {
  return readText(harnessStamp(folder)) !== hashOf([path.join(folder, 'package-lock.json')])
}

async function installHarness({ folder, what }) {
  console.log(`Installing ${what} …`)
  // Not "npm ci": that wants the packages of all platforms in a lock file, also those that its registry does not have.
  await run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], folder)
  writeFileSync(harnessStamp(folder), hashOf([path.join(folder, 'package-lock.json')]))
}

function harnessStamp(folder) {
  return path.join(folder, 'node_modules/.toolgate-install')
}

function isConsoleDue() {
  if (!existsSync(path.join(CONSOLE, 'index.html'))) return false
  return readText(CONSOLE_STAMP) !== hashOf(consoleSources())
}

async function buildConsole() {
  console.log('Building the web console …')
  // Built beside and then moved, so that a failed build leaves the earlier one in place.
  const next = path.join(ROOT, '.toolgate/console.next')
  const node = path.join(ROOT, 'node_modules/.bin/node')
  const vite = path.join(ROOT, 'node_modules/vite/bin/vite.js')
  const hash = hashOf(consoleSources())
  await run(node, [vite, 'build', '--outDir', next, '--emptyOutDir', '--logLevel', 'warn'], CONSOLE)
  writeFileSync(path.join(next, '.stamp'), hash)
  rmSync(CONSOLE_OUT, { recursive: true, force: true })
  renameSync(next, CONSOLE_OUT)
}

function consoleSources() {
  const skipped = new Set(['node_modules', 'dist', 'test'])
  const files = readdirSync(CONSOLE, { withFileTypes: true }).filter((entry) => !skipped.has(entry.name))
  return [LOCK_FILE, ...files.flatMap((entry) => filesBelow(path.join(CONSOLE, entry.name), entry))]
}

function filesBelow(file, entry) {
  if (!entry.isDirectory()) return entry.isFile() && !/\.test\.tsx?$/.test(file) ? [file] : []
  return readdirSync(file, { withFileTypes: true }).flatMap((below) => filesBelow(path.join(file, below.name), below))
}

function hashOf(files) {
  const hash = createHash('sha256')
  for (const file of files.toSorted()) {
    const content = readFileSync(file)
    hash.update(`${path.relative(ROOT, file)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Runs a command. While it takes long, a line says that it goes on, as npm says nothing where there is no terminal. */
async function run(command, args, cwd, describe = () => '') {
  // Not the Node that an install is about to replace.
  const PATH = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(path.delimiter)
  const begun = Date.now()
  const env = { ...process.env, PATH }
  const child = spawn(command, args, { cwd, stdio: 'inherit', env, shell: process.platform === 'win32' })
  const stop = () => child.kill()
  process.once('exit', stop)
  const timer = setInterval(() => {
    const parts = [describe(), `${Math.round((Date.now() - begun) / 1000)} s`].filter(Boolean)
    console.log(`  … ${parts.join(', ')}`)
  }, PROGRESS_MS)
  try {
    const [status, signal] = await once(child, 'exit')
    if (status !== 0) fail(`${command} ${args.join(' ')} ended with ${signal ?? `exit code ${status}`}`)
  } catch (error) {
    fail(`${command} could not be started: ${error.message}`)
  } finally {
    clearInterval(timer)
    process.off('exit', stop)
  }
}

/** Runs one at a time, over all processes: a folder is made by exactly one of those who try. */
async function alone(work) {
  mkdirSync(path.dirname(BUSY), { recursive: true })
  let told = false
  while (!take()) {
    if (!told) console.log('Waiting for another preparation to end …')
    told = true
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  process.once('exit', () => rmSync(BUSY, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  await work()
}

function take() {
  try {
    mkdirSync(BUSY)
    writeFileSync(path.join(BUSY, 'pid'), String(process.pid))
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    dropIfAbandoned()
    return false
  }
}

/** The folder of a process that was killed is renamed first, so that only one of those who wait removes it. */
function dropIfAbandoned() {
  const pid = Number(readText(path.join(BUSY, 'pid')))
  if (pid > 0 ? isAlive(pid) : isFresh()) return
  const away = `${BUSY}.${process.pid}`
  try {
    renameSync(BUSY, away)
    rmSync(away, { recursive: true, force: true })
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}

function isFresh() {
  try {
    return Date.now() - statSync(BUSY).mtimeMs < INSTALL_SLACK_MS
  } catch {
    return true
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function fail(message) {
  console.error(`scripts/prepare.js: ${message}`)
  process.exit(1)
}
