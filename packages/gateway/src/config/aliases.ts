import { lint } from '@toolgate/core'
import type { GatewayConfig } from './config.ts'
import { checkShape } from './explain.ts'
import { has, type Reading } from './reading.ts'
import { aliasesSchema } from './schema.ts'

/** Reads `aliases`. Which tools exist is known when the servers have listed theirs. */
export function readAliases({ source }: Reading): Pick<GatewayConfig, 'aliases'> {
  if (!has(source, ['aliases'])) return {}
  const aliases = checkShape(source, ['aliases'], aliasesSchema)
  if (!aliases) return {}
  // Each beside the others, so that one bad alias does not hide another.
  for (const [alias, tool] of Object.entries(aliases)) {
    const others = Object.keys(aliases).filter((other) => other === tool && other !== alias)
    const named = { [alias]: tool, ...Object.fromEntries(others.map((other) => [other, 'another'])) }
    for (const { code, path, text } of lint({ tools: [], aliases: named }))
      if (code !== 'selector_unmatched' && path === `aliases.${alias}`) source.report(['aliases', alias], text)
  }
  return { aliases }
}
