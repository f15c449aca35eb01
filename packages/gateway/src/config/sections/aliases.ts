import { lint } from '@toolgate/core'
import type { GatewayConfig } from '../config.ts'
import type { Reading } from '../reading.ts'
import { aliasesSchema } from '../schema/groups.ts'
import { plain, type Section } from '../section.ts'

const written = plain(aliasesSchema)

/** Other names of tools, which are known only when the servers run. */
export const aliases: Section<GatewayConfig['aliases']> = { ...written, read: readAliases }

function readAliases(reading: Reading, key: string): GatewayConfig['aliases'] {
  const { source } = reading
  const read = written.read(reading, key)
  const all = Object.entries(read ?? {})
  // Aliases are checked one by one, so that every problem is reported.
  for (const [alias, tool] of all) {
    const others = all.map(([name]) => name).filter((other) => other === tool && other !== alias)
    const named = { [alias]: tool, ...Object.fromEntries(others.map((other) => [other, 'another'])) }
    for (const { code, path, text } of lint({ tools: [], aliases: named }))
      if (code !== 'selector_unmatched' && path === `aliases.${alias}`) source.report(['aliases', alias], text)
  }
  return read
}
