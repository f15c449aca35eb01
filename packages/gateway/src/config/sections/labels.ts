import { lint } from '@toolgate/core'
import type { GatewayConfig } from '../config.ts'
import type { ConfigPath } from '../problems.ts'
import { checkShape, has, readEach, type Reading } from '../reading.ts'
import { labelsSchema } from '../schema/policy.ts'
import type { Section } from '../section.ts'

/** The labels of tools, which are known only when the servers run. */
export const labels: Section<GatewayConfig['labels']> = { schema: labelsSchema, read: readLabels }

function readLabels(reading: Reading): GatewayConfig['labels'] {
  const { source } = reading
  const at: ConfigPath = ['labels']
  if (!has(source, at)) return undefined
  const read = Object.fromEntries(
    readEach(source, at, labelsSchema, (place, key) => {
      const label = String(key)
      const selectors = checkShape(source, place, labelsSchema.valueType)
      reportLabels(reading, place, { [label]: [] })
      for (const [i, selector] of (selectors ?? []).entries())
        reportLabels(reading, [...place, i], { trusted: [selector] })
      return selectors && ([label, selectors] as const)
    }),
  )
  reportLabels(reading, at, Object.fromEntries(Object.keys(read).map((label) => [label, []])), 'labels')
  return read
}

/** Reports the problems that core finds in labels. With `only`, it reports only the problems at that path. */
function reportLabels({ source, groupNames }: Reading, at: ConfigPath, lists: LabelLists, only?: string): void {
  const groups = new Map(groupNames.map((name) => [name, { tools: [] }]))
  for (const { code, path, text } of lint({ tools: [], groups, labels: lists }))
    if (code !== 'selector_unmatched' && (only ?? path) === path) source.report(at, text, { atKey: at.length < 3 })
}

type LabelLists = NonNullable<GatewayConfig['labels']>
