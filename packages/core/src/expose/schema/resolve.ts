import { below, isObject, SchemaProblem } from './node.ts'

/** Where a reference leads, within the same document. */
export interface Place {
  readonly raw: object | boolean
  readonly pointer: string
}

/** Gives where a `$ref` of a schema leads. Never fetches. */
export type Resolve = (from: object, ref: string, path: string) => Place

/**
 * Gives a resolver of references within one document: JSON Pointers, anchors, and `$id`s that the document itself
 * has (JSON Schema 2020-12, section 8.2).
 *
 * @throws {SchemaProblem} `remote_ref` for one that leads elsewhere, `unresolved_ref` for one that leads nowhere
 */
export function createResolve(root: object): Resolve {
  let index: Index | undefined
  return (from, ref, path) => {
    index ??= indexDocument(root)
    const base = index.bases.get(from) ?? ROOT
    const target = URL.canParse(ref, base) ? new URL(ref, base) : undefined
    if (!target)
      throw new SchemaProblem('unresolved_ref', path, `refers to ${JSON.stringify(ref)}, which is no reference`)
    const fragment = decode(target.hash.slice(1))
    target.hash = ''
    const resource = index.resources.get(target.href)
    if (!resource)
      throw new SchemaProblem('remote_ref', path, `refers to ${JSON.stringify(ref)}, which is not in the schema itself`)
    const place =
      fragment === '' || fragment?.startsWith('/')
        ? walk(resource, fragment)
        : index.anchors.get(`${target.href}#${fragment ?? ''}`)
    if (!place) throw new SchemaProblem('unresolved_ref', path, `refers to ${JSON.stringify(ref)}, which is not there`)
    return place
  }
}

/** Stands for the address that a schema without one has. Nothing is ever asked there. */
const ROOT = 'https://schema.invalid/'

interface Index {
  readonly bases: ReadonlyMap<object, string>
  readonly resources: ReadonlyMap<string, Place>
  readonly anchors: ReadonlyMap<string, Place>
}

function indexDocument(root: object): Index {
  const bases = new Map<object, string>()
  const resources = new Map<string, Place>([[ROOT, { raw: root, pointer: '' }]])
  const anchors = new Map<string, Place>()

  const visit = (value: unknown, pointer: string, parentBase: string): void => {
    if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) visit(item, below(pointer, i), parentBase)
    } else if (isObject(value)) {
      const id = value['$id']
      let base = parentBase
      if (typeof id === 'string' && !id.startsWith('#') && URL.canParse(id, parentBase)) {
        const address = new URL(id, parentBase)
        address.hash = ''
        base = address.href
        if (!resources.has(base)) resources.set(base, { raw: value, pointer })
      }
      bases.set(value, base)
      // Draft-07 writes an anchor as an `$id` that is a fragment.
      const names = [
        value['$anchor'],
        value['$dynamicAnchor'],
        typeof id === 'string' && id.startsWith('#') ? id.slice(1) : undefined,
      ]
      for (const name of names) {
        if (typeof name === 'string' && !anchors.has(`${base}#${name}`))
          anchors.set(`${base}#${name}`, { raw: value, pointer })
      }
      for (const key of Object.keys(value).toSorted()) visit(value[key], below(pointer, key), base)
    }
  }
  visit(root, '', ROOT)
  return { bases, resources, anchors }
}

function walk(resource: Place, fragment: string): Place | undefined {
  let { raw, pointer }: { raw: unknown; pointer: string } = resource
  for (const step of fragment.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, key)) return undefined
    raw = (raw as Readonly<Record<string, unknown>>)[key]
    pointer = below(pointer, key)
  }
  return isObject(raw) || typeof raw === 'boolean' ? { raw, pointer } : undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
