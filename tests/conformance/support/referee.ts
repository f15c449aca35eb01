import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** A run of the referee: which version, and what it asks for. */
export interface RefereeRun {
  readonly name: string
  readonly referee: 'referee' | 'referee-next'
  readonly args: readonly string[]
}

export const RUNS = {
  first: { name: '0.1.16, all', referee: 'referee', args: ['--suite', 'all'] },
  earlier: { name: '0.2.0-alpha.12, 2025-11-25', referee: 'referee-next', args: ['--requirements', '2025-11-25'] },
  modern: { name: '0.2.0-alpha.12, 2026-07-28', referee: 'referee-next', args: ['--requirements', '2026-07-28'] },
} as const satisfies Readonly<Record<string, RefereeRun>>

/** How a check ended, by `scenario / check`; where a scenario has several checks of one id, the worst of them. */
export type Verdicts = ReadonlyMap<string, string>

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

const WORST_FIRST = ['FAILURE', 'WARNING', 'SKIPPED', 'SUCCESS', 'INFO']
const MODULES = path.join(import.meta.dirname, '../node_modules')
const MAX_OUTPUT = 64 * 1024 * 1024

/** Runs the referee against a server and returns its verdicts. */
export async function judge({ referee, args }: RefereeRun, url: string, folder: string): Promise<Verdicts> {
  const program = path.join(MODULES, referee, 'dist/index.js')
  if (!existsSync(program)) throw new Error('The referee is not installed: node scripts/prepare.js --harness')
  const command = [program, 'server', '--url', url, '-o', folder, ...args]
  // It exits with 1 where a check fails: the verdicts say which.
  await new Promise<void>((resolve) => execFile(process.execPath, command, { maxBuffer: MAX_OUTPUT }, () => resolve()))
  return readVerdicts(folder)
}

function readVerdicts(folder: string): Verdicts {
  const verdicts = new Map<string, string>()
  for (const file of globSync('**/checks.json', { cwd: folder }).toSorted()) {
    // `server-<scenario>-<time>`
    const scenario = path.basename(path.dirname(file)).replace(/^server-|-\d{4}-\d{2}-\d{2}T.*$/g, '')
    for (const { id, status } of JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as Check[]) {
      const key = `${scenario} / ${id}`
      const before = verdicts.get(key)
      if (before === undefined || WORST_FIRST.indexOf(status) < WORST_FIRST.indexOf(before)) verdicts.set(key, status)
    }
  }
  return verdicts
}
