import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const REAL: string = path.join(import.meta.dirname, '..')
/** Where installed packages and built programs are kept. */
export const CACHE: string = path.join(REAL, '../../node_modules/.cache/real')
/** What package managers print where no registry answers. */
const OFFLINE =
  /dial tcp|no such host|Could not resolve|name resolution|failed to get|[Nn]etwork is unreachable|[Cc]onnection refused|Max retries|No matching distribution|timed out/

/** Runs a program to its end. */
export type Run = (command: string, args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<void>

/**
 * Returns a folder with what `make` puts into it, made once for each content of the folder `from`. Without a registry it
 * prints that the tests are left out, and returns `undefined`.
 *
 * @param make gets the folder to fill, and a copy of `from`
 */
export async function installed(
  from: string,
  files: readonly string[],
  make: (folder: string, sources: string, run: Run) => Promise<void>,
): Promise<string | undefined> {
  const source = path.join(REAL, from)
  const names = files.flatMap((file) => globSync(file, { cwd: source })).toSorted()
  const texts = names.map((name) => `${name}\0${readFileSync(path.join(source, name), 'utf8')}`)
  const kept = path.join(
    CACHE,
    `${path.basename(from)}-${hash('sha256', [process.version, ...texts].join('\0')).slice(0, 16)}`,
  )
  if (existsSync(kept)) return kept
  mkdirSync(CACHE, { recursive: true })
  const next = mkdtempSync(`${kept}.`)
  const sources = path.join(next, 'sources')
  for (const name of names) cpSync(path.join(source, name), path.join(sources, name))
  const run: Run = async (command, args, env = {}) => {
    await promisify(execFile)(command, args, { cwd: sources, env: { ...process.env, ...env }, maxBuffer: 64 * 2 ** 20 })
  }
  try {
    await make(next, sources, run)
    rmSync(sources, { recursive: true, force: true })
    // Another process may have been first.
    if (!existsSync(kept)) renameSync(next, kept)
    return kept
  } catch (error) {
    const reason = String((error as { stderr?: string }).stderr ?? error)
    if (!OFFLINE.test(reason)) throw error
    console.warn(
      `left out: the tests of ${from} need the packages of a registry, and none answers: ${reason.slice(-300)}`,
    )
    return undefined
  } finally {
    if (statSync(next, { throwIfNoEntry: false }) !== undefined) rmSync(next, { recursive: true, force: true })
  }
}
