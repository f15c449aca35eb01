import { type Draft, idKeyword } from './dialects.ts'

/** The places that references of a document can lead to. */
export interface References {
  /** Gives the document, or the part of it with an id of its own, that an object's references are relative to. */
  resourceOf(schema: object): object
  /** Gives what a reference that begins with `#` leads to from a schema, if that is a schema. */
  find(reference: string, from: object): object | boolean | undefined
  /** Gives the schema of a resource that has a `$dynamicAnchor`. */
  findDynamic(name: string, resource: object): object | undefined
  readonly resources: number
}

interface Resource {
  readonly anchors: Map<string, object>
  readonly dynamicAnchors: Map<string, object>
}

export function createReferences(document: object, draft: Draft): References {
  const id = idKeyword(draft)
  const owners = new Map<object, object>()
  const resources = new Map<object, Resource>()
  const anywhere = new Map<string, object>()
  index(document, document)

  function index(value: object, within: object): void {
    const { [id]: own, $anchor, $dynamicAnchor } = value as Readonly<Record<string, unknown>>
    const begins = value === document || (typeof own === 'string' && !own.startsWith('#'))
    const resource = begins ? value : within
    owners.set(value, resource)
    let known = resources.get(resource)
    if (!known) resources.set(resource, (known = { anchors: new Map(), dynamicAnchors: new Map() }))
    const fragment = typeof own === 'string' && own.startsWith('#') ? own.slice(1) : undefined
    for (const name of [$anchor, $dynamicAnchor, fragment]) {
      if (typeof name !== 'string') continue
      known.anchors.set(name, value)
      anywhere.set(name, value)
    }
    if (typeof $dynamicAnchor === 'string') known.dynamicAnchors.set($dynamicAnchor, value)
    for (const item of Object.values(value)) if (typeof item === 'object' && item !== null) index(item, resource)
  }

  return {
    resources: resources.size,
    resourceOf: (schema) => owners.get(schema) ?? document,
    findDynamic: (name, resource) => resources.get(resource)?.dynamicAnchors.get(name),
    find(reference, from) {
      const resource = owners.get(from) ?? document
      const fragment = decode(reference.slice(1))
      if (fragment === undefined) return undefined
      if (fragment === '') return resource
      if (!fragment.startsWith('/')) return resources.get(resource)?.anchors.get(fragment) ?? anywhere.get(fragment)
      return follow(fragment, resource)
    },
  }
}

/** RFC 6901 in the fragment of a URI. */
function follow(pointer: string, resource: object): object | boolean | undefined {
  let at: unknown = resource
  for (const step of pointer.slice(1).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  if (typeof at === 'boolean') return at
  return typeof at === 'object' && at !== null && !Array.isArray(at) ? at : undefined
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}
