import type { GatewayConfig } from './config.ts'
import { findFetchedPrograms } from './fetched-program.ts'
import { type ConfigPath, formatPath } from './problems.ts'

interface FetchWarning {
  readonly code: 'program_unpinned'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/**
 * Returns a warning for each server whose command fetches a program without an exact version, because each start may
 * run another version. Pins do not notice this: they compare only the definitions of tools. Returns none if pins are
 * off, as nobody then expects to be told of changes.
 */
export function findFetchWarnings({ servers, pins }: Pick<GatewayConfig, 'servers' | 'pins'>): readonly FetchWarning[] {
  if ((typeof pins === 'object' ? pins.changed : pins) === 'off') return []
  return servers.flatMap(({ name, command, args }) => {
    if (command === undefined) return []
    const at = ['servers', name]
    return findFetchedPrograms(command, args).map(({ written, exact }): FetchWarning => {
      const text = `the server "${name}" runs ${JSON.stringify(written)}, which may be another program at each start, and pins compare only what its tools say: write ${exact}`
      return { code: 'program_unpinned', at, path: formatPath(at), text }
    })
  })
}
