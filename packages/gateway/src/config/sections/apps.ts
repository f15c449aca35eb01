import { didYouMean } from '@toolgate/values'
import type { AppConfig, AppImportConfig } from '../config.ts'
import { checkShape, has, readEach, type Reading } from '../reading.ts'
import { checkSelector } from '../policy.ts'
import type { ConfigPath } from '../problems.ts'
import { appShellSchema, appsSchema } from '../schema/policy.ts'
import type { Section } from '../section.ts'
import { readPolicies } from './policy.ts'

export const apps: Section<readonly AppConfig[]> = {
  schema: appsSchema,
  read: (reading) => readEach(reading.source, ['apps'], appsSchema, (_, name) => readApp(reading, String(name))),
}

function readApp(reading: Reading, name: string): AppConfig | undefined {
  const { source } = reading
  const at = ['apps', name]
  const input = checkShape(source, at, appShellSchema)
  const policy = has(source, [...at, 'policy']) ? readPolicies(reading, [...at, 'policy']) : []
  if (!input) return undefined
  const { tools = [], ...shown } = input
  const imports = (input.import ?? []).map((one) => (typeof one === 'string' ? { group: one } : one))
  for (const [i, selector] of tools.entries()) checkOwn(reading, [...at, 'tools', i], selector)
  checkImports(reading, [...at, 'import'], imports)
  if (imports.length + tools.length === 0)
    source.report(at, 'offers nothing, expected "import" or "tools"', { atKey: true })
  return { ...shown, name, import: imports, tools, policy }
}

function checkOwn(reading: Reading, at: ConfigPath, selector: string): void {
  if (selector.startsWith('group:'))
    reading.source.report(
      at,
      `found ${JSON.stringify(selector)}, expected the tools themselves; use "import" for a group`,
    )
  else checkSelector(reading, at, selector)
}

function checkImports(
  { source, groupNames }: Reading,
  at: ConfigPath,
  imports: readonly { readonly group: AppImportConfig['group'] }[],
): void {
  for (const [i, { group }] of imports.entries()) {
    if (!groupNames.includes(group))
      source.report([...at, i], `no group is named ${JSON.stringify(group)}${didYouMean(group, groupNames)}`)
    else if (imports.findIndex((one) => one.group === group) < i)
      source.report([...at, i], `imports the group ${JSON.stringify(group)} a second time`)
  }
}
