import { dialectOf, idKeyword, metaSchemasOf } from '@toolgate/values/json-schema'
import type { JsonSchema } from '@toolgate/core'
import { below, isNode, isObject, type SchemaNode, SchemaProblem, wordOf } from './node.ts'
import type { Reader } from './read.ts'

/** The target of a reference, within the same document. */
interface ReferenceTarget {
  readonly raw: JsonSchema | boolean
  readonly pointer: string
}

/** Returns the target of a `$ref` of a schema. Never fetches. */
export type Resolve = (from: object, ref: string, path: string) => ReferenceTarget

/**
 * Returns a resolver of references within one document: JSON Pointers, anchors, and `$id`s of the document itself (JSON
 * Schema 2020-12 §8.2).
 *
 * @throws {SchemaProblem} `remote_ref` for a reference to another document, `unresolved_ref` for an unknown target
 */
export function createResolve(root: JsonSchema): Resolve {
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
    if (!resource && metaSchemasOf(target.href)) return { raw: ANY_SCHEMA, pointer: path }
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

/** Replaces a meta-schema, which no provider supports. The gate checks the input in any case. */
const ANY_SCHEMA: JsonSchema = { type: ['object', 'boolean'], description: 'A JSON Schema' }

/** The base URI of a schema without one. It is never requested. */
const ROOT = 'https://schema.invalid/'

interface Index {
  readonly bases: ReadonlyMap<object, string>
  readonly resources: ReadonlyMap<string, ReferenceTarget>
  readonly anchors: ReadonlyMap<string, ReferenceTarget>
}

function indexDocument(root: JsonSchema): Index {
  const bases = new Map<object, string>()
  const resources = new Map<string, ReferenceTarget>([[ROOT, { raw: root, pointer: '' }]])
  const anchors = new Map<string, ReferenceTarget>()
  const { draft } = dialectOf(root)
  const keyword = idKeyword(draft)

  const visit = (value: unknown, pointer: string, parentBase: string): void => {
    if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) visit(item, below(pointer, i), parentBase)
    } else if (isObject(value)) {
      const id = value[keyword]
      let base = parentBase
      if (typeof id === 'string' && !id.startsWith('#') && URL.canParse(id, parentBase)) {
        const address = new URL(id, parentBase)
        address.hash = ''
        base = address.href
        if (!resources.has(base)) resources.set(base, { raw: value, pointer })
      }
      bases.set(value, base)
      const names = [
        value['$anchor'],
        value['$dynamicAnchor'],
        toAnchor(id),
        draft === 'unnamed' ? toAnchor(value['id']) : undefined,
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

/** Up to draft-07 an anchor is written as an `$id`, in draft-04 an `id`, that is a fragment. */
function toAnchor(id: unknown): string | undefined {
  return typeof id === 'string' && id.startsWith('#') ? id.slice(1) : undefined
}

function walk(resource: ReferenceTarget, fragment: string): ReferenceTarget | undefined {
  let { raw, pointer }: { raw: unknown; pointer: string } = resource
  for (const step of fragment.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, key)) return undefined
    raw = Reflect.get(raw, key)
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

/** The references of one schema, and the definitions of those that stay. */
export interface SchemaReferences {
  /** Returns the target of a node's `$ref`, past targets that are references themselves. */
  target(node: SchemaNode): SchemaNode
  /** Whether a schema refers to itself. */
  isRecursive(target: SchemaNode): boolean
  /** Returns the name under which a schema will be written in `$defs`. */
  nameOf(target: SchemaNode): string
  /** Writes every named schema, including those that are named meanwhile. */
  writeAll(write: (node: SchemaNode) => JsonSchema): Readonly<Record<string, JsonSchema>> | undefined
}

export function createReferences(root: JsonSchema, read: Reader): SchemaReferences {
  const resolve = createResolve(root)
  const targets = new Map<SchemaNode, SchemaNode>()
  const recursive = new Map<SchemaNode, boolean>()
  const names = new Map<SchemaNode, string>()

  function target(node: SchemaNode): SchemaNode {
    const known = targets.get(node)
    if (known) return known
    const seen = new Set<SchemaNode>()
    let at = follow(node)
    let end: SchemaNode | undefined
    for (;;) {
      if (!at.words.has('$ref')) break
      if (at.words.size > 1) end ??= at
      if (seen.has(at)) throw new SchemaProblem('unresolved_ref', at.pointer, 'refers to itself and nothing else')
      seen.add(at)
      at = follow(at)
    }
    end ??= at
    targets.set(node, end)
    return end
  }

  function follow(node: SchemaNode): SchemaNode {
    const place = resolve(node.raw ?? root, wordOf(node, '$ref') ?? '', below(node.pointer, '$ref'))
    return read(place.raw, place.pointer)
  }

  function isRecursive(start: SchemaNode): boolean {
    const known = recursive.get(start)
    if (known !== undefined) return known
    const seen = new Set<SchemaNode>()
    const open = [...reachable(start)]
    let found = false
    for (let node = open.pop(); node !== undefined && !found; node = open.pop()) {
      found = node === start
      if (seen.has(node)) continue
      seen.add(node)
      open.push(...reachable(node))
    }
    recursive.set(start, found)
    return found
  }

  /** The schemas directly inside one, and the one that it refers to. */
  function reachable(node: SchemaNode): readonly SchemaNode[] {
    const inside = [...node.words.values()].flatMap(nodesOf)
    return node.words.has('$ref') ? [...inside, target(node)] : inside
  }

  return {
    target,
    isRecursive,
    nameOf(node) {
      const known = names.get(node)
      if (known !== undefined) return known
      const taken = new Set(names.values())
      const base = baseName(node.pointer)
      let name = base
      for (let i = 2; taken.has(name); i++) name = `${base}_${i}`
      names.set(node, name)
      return name
    },
    writeAll(write) {
      const written = new Map<string, JsonSchema>()
      // A map also iterates over entries that are added meanwhile.
      for (const [node, name] of names) written.set(name, write(node))
      return written.size === 0 ? undefined : Object.fromEntries([...written].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}

/** Returns the last step of a pointer, in characters that every consumer of references accepts. */
function baseName(pointer: string): string {
  const last = pointer.slice(pointer.lastIndexOf('/') + 1)
  return last.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, 64) || 'definition'
}

function nodesOf(word: unknown): readonly SchemaNode[] {
  if (isNode(word)) return [word]
  const inside: unknown[] = word instanceof Map ? [...word.values()] : Array.isArray(word) ? word : []
  return inside.flatMap(nodesOf)
}
