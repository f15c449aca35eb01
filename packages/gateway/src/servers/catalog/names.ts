import { MAX_NAME_LENGTH } from '@toolgate/expose'
import type { FindRules, NameRules } from '@toolgate/mcp'
import type { GatewayConfig } from '../../config/config.ts'

/** Returns the rules by which clients name the tools of each server. */
export function toNameRules({ names, servers }: Pick<GatewayConfig, 'names' | 'servers'>): FindRules {
  const defaults: NameRules = { prefix: 'always', max: MAX_NAME_LENGTH, renamed: new Map(), ...names }
  // Only tools have overlays with names.
  const rules = new Map(
    servers.map((server): [string, NameRules] => {
      const renamed = [...server.tools].flatMap(([tool, { name }]): [string, string][] =>
        name === undefined ? [] : [[tool, name]],
      )
      return [server.name, { ...defaults, ...server.names, renamed: new Map(renamed) }]
    }),
  )
  return (server, kind) => {
    const found = rules.get(server) ?? defaults
    return kind === 'tool' ? found : { ...found, renamed: defaults.renamed }
  }
}
