import { type Bits, noBits, setBit } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { isNormalUri } from '../tools/uri.ts'
import { parseUriTemplate, type UriTemplate } from '../tools/uri-template.ts'

/** A template of a snapshot, and the resources of its server that it may match. */
export interface TemplateIndex {
  readonly at: number
  readonly matched: Bits
}

const indexes = new WeakMap<Toolset, readonly TemplateIndex[]>()

/** Returns the templates of a snapshot, sorted by id. Computed at first use and cached with the snapshot. */
export function templatesOf(snapshot: Toolset): readonly TemplateIndex[] {
  let found = indexes.get(snapshot)
  if (!found) indexes.set(snapshot, (found = indexTemplates(snapshot)))
  return found
}

function indexTemplates({ tools, size }: Toolset): readonly TemplateIndex[] {
  const all = [...tools.entries()]
  const templates = all.filter(([, { kind }]) => kind === 'template')
  if (templates.length === 0) return []
  const resources = Map.groupBy(
    all.filter(([, { kind }]) => kind === 'resource'),
    ([, { namespace }]) => namespace,
  )
  return templates.map(([at, template]) => {
    const matched = noBits(size)
    for (const [i, resource] of resources.get(template.namespace) ?? [])
      if (mayMatch(template, resource)) setBit(matched, i)
    return { at, matched }
  })
}

const parsed = new WeakMap<Tool, UriTemplate>()
const normal = new WeakMap<Tool, boolean>()

/** Returns whether a template may match a resource of its server. */
export function mayMatch(template: Tool, resource: Tool): boolean {
  let pattern = parsed.get(template)
  if (!pattern) parsed.set(template, (pattern = parseUriTemplate(template.uri as string)))
  const uri = resource.uri as string
  return pattern.matches(uri) || !isNormal(resource, uri)
}

/** Returns whether the URI of a resource is in normal form. */
export function isNormal(resource: Tool, uri: string = resource.uri as string): boolean {
  let known = normal.get(resource)
  if (known === undefined) normal.set(resource, (known = isNormalUri(uri)))
  return known
}
