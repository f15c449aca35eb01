import { accessSync, constants } from 'node:fs'
import path from 'node:path'

/** The folders in which package managers keep what they download: their variable, and their place below HOME. */
const CACHES: readonly (readonly [variable: string, folder: string])[] = [
  ['npm_config_cache', '.npm'],
  ['YARN_GLOBAL_FOLDER', '.yarn/berry'],
  ['BUN_INSTALL_CACHE_DIR', '.bun/install/cache'],
  ['DENO_DIR', '.cache/deno'],
  ['UV_CACHE_DIR', '.cache/uv'],
  ['UV_PYTHON_INSTALL_DIR', '.local/share/uv/python'],
  ['UV_TOOL_DIR', '.local/share/uv/tools'],
  ['PIP_CACHE_DIR', '.cache/pip'],
  ['PIPX_HOME', '.local/share/pipx'],
  ['GOMODCACHE', 'go/pkg/mod'],
  ['GOCACHE', '.cache/go-build'],
  ['NUGET_PACKAGES', '.nuget/packages'],
  ['PLAYWRIGHT_BROWSERS_PATH', '.cache/ms-playwright'],
  ['PUPPETEER_CACHE_DIR', '.cache/puppeteer'],
  ['HF_HUB_CACHE', '.cache/huggingface/hub'],
]
/** The folders of pnpm, by its variables before and since pnpm 11. npm warns of them, so only pnpm gets them. */
const PNPM_CACHES: typeof CACHES = ['npm', 'pnpm'].flatMap((prefix) => [
  [`${prefix}_config_store_dir`, '.local/share/pnpm/store'] as const,
  [`${prefix}_config_cache_dir`, '.cache/pnpm'] as const,
])

/** The variables that name a folder of packages. npm reads its own in any case. */
export const CACHE_VARIABLES: readonly string[] = [
  ...[...CACHES, ...PNPM_CACHES].map(([variable]) => variable),
  'NPM_CONFIG_CACHE',
]

export type ProcessEnv = Readonly<Record<string, string | undefined>>

/**
 * Returns the folders of packages for a child with a HOME of its own, so that it does not download everything again. A
 * variable that is set already stays.
 *
 * The folder is the one that a command of this process's user has, if that exists and is writable, or else one below
 * `fallback`.
 */
export function sharedCaches(
  { command, set, fallback }: { readonly command: string; readonly set: ProcessEnv; readonly fallback: string },
  env: ProcessEnv = process.env,
): Record<string, string> {
  const known = new Set([...Object.keys(set), ...Object.keys(env)].map((name) => name.toLowerCase()))
  const caches = /(?:^|[/\\])pnp[mx]/.test(command) ? [...CACHES, ...PNPM_CACHES] : CACHES
  const free = caches.filter(([variable]) => !known.has(variable.toLowerCase()))
  return Object.fromEntries(
    free.map(([variable, folder]) => {
      const own = ownFolder(folder, env)
      return [variable, own !== undefined && isWritable(own) ? own : path.join(fallback, folder)]
    }),
  )
}

/** Returns where this process's user keeps the packages (XDG Base Directory Specification). */
function ownFolder(
  folder: string,
  { HOME, XDG_CACHE_HOME: cache, XDG_DATA_HOME: data }: ProcessEnv,
): string | undefined {
  if (cache !== undefined && folder.startsWith('.cache/')) return path.join(cache, folder.slice('.cache/'.length))
  if (data !== undefined && folder.startsWith('.local/share/'))
    return path.join(data, folder.slice('.local/share/'.length))
  return HOME === undefined ? undefined : path.join(HOME, folder)
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
