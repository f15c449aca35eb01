import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/values'
import { CliError } from '../exit.ts'
import { type Io, printLine } from '../io.ts'

/**
 * Installs the demo servers beside the quickstart with npm, if they are missing.
 *
 * The quickstart's own package.json lists them, so that only users of the quickstart install them. A clone has no such
 * file, because it installs them with everything else.
 *
 * @throws {CliError} if npm cannot install them
 */
export async function installDemoServers(folder: string, { stdout, stderr, env }: Io): Promise<void> {
  const manifest = path.join(folder, 'package.json')
  if (!existsSync(manifest)) return
  const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies: Record<string, string> }
  const missing = Object.entries(dependencies).filter(([name, version]) => installed(folder, name) !== version)
  if (missing.length === 0) return
  const named = missing.map(([name, version]) => `${name}@${version}`)
  printLine(stdout, 'The quickstart needs demo servers, which are not part of this package. npm installs them now:')
  for (const one of named) printLine(stdout, `  ${one}`)
  printLine(stdout, `into ${folder}, without running their install scripts.`)
  const ended = await runNpm(
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    folder,
    env,
  )
  if (ended.output) stderr.write(ended.output)
  if (ended.problem === undefined) return
  throw new CliError('no', `The demo servers could not be installed: ${ended.problem}.`, {
    hint: `Install them yourself with "npm install --ignore-scripts" in ${folder}, or use "toolgate init" for your own servers.`,
  })
}

function installed(folder: string, name: string): string | undefined {
  const manifest = path.join(folder, 'node_modules', name, 'package.json')
  if (!existsSync(manifest)) return undefined
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version?: string }).version
}

/** Runs npm: the npm that runs this command, or else the one in PATH. */
async function runNpm(
  args: readonly string[],
  cwd: string,
  env: Io['env'],
): Promise<{ readonly output: string; readonly problem?: string }> {
  const own = env['npm_execpath']
  const usesOwn = own?.endsWith('npm-cli.js') === true
  const [command, first]: [string, string[]] = usesOwn ? [process.execPath, [own]] : ['npm', []]
  // On Windows npm is a shell script. No argument comes from outside.
  const shell = !usesOwn && process.platform === 'win32'
  const child = spawn(command, [...first, ...args], { cwd, env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'], shell })
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stdout.resume()
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    return code === 0 ? { output } : { output, problem: `npm ended with ${signal ?? `exit code ${code}`}` }
  } catch (error) {
    return { output, problem: errnoOf(error) === 'ENOENT' ? 'npm was not found' : String(error) }
  }
}
