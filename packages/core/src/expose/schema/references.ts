import type { JsonSchema } from '../../tools/tool.ts'
import { below, type Node, SchemaProblem } from './node.ts'
import type { Reader } from './read.ts'
import { createResolve } from './resolve.ts'

/** The references of one schema, and the definitions that those which stay lead to. */
export interface References {
  /** Where a node's `$ref` leads, past references that only lead on. */
  target(node: Node): Node
  /** Whether a schema holds a reference to itself. */
  isRecursive(target: Node): boolean
  /** The name of a schema in `$defs`, where it will be written. */
  nameOf(target: Node): string
  /** Writes every schema that was named, also those that are named on the way. */
  writeAll(write: (node: Node) => JsonSchema): Readonly<Record<string, JsonSchema>> | undefined
}

export function createReferences(root: JsonSchema, read: Reader): References {
  const resolve = createResolve(root)
  const targets = new Map<Node, Node>()
  const recursive = new Map<Node, boolean>()
  const names = new Map<Node, string>()

  function target(node: Node): Node {
    const known = targets.get(node)
    if (known) return known
    const seen = new Set<Node>()
    let at = follow(node)
    let end: Node | undefined
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

  function follow(node: Node): Node {
    const place = resolve(node.raw as object, node.words.get('$ref') as string, below(node.pointer, '$ref'))
    return read(place.raw, place.pointer)
  }

  function isRecursive(start: Node): boolean {
    const known = recursive.get(start)
    if (known !== undefined) return known
    const seen = new Set<Node>()
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
  function reachable(node: Node): readonly Node[] {
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
      // A map gives also what is added while it is walked.
      for (const [node, name] of names) written.set(name, write(node))
      return written.size === 0 ? undefined : Object.fromEntries([...written].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}

/** The last step of a pointer, of characters that every reader of references takes. */
function baseName(pointer: string): string {
  const last = pointer.slice(pointer.lastIndexOf('/') + 1)
  return last.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, 64) || 'definition'
}

function nodesOf(word: unknown): readonly Node[] {
  if (Array.isArray(word)) return word.flatMap(nodesOf)
  if (word instanceof Map) return [...(word as ReadonlyMap<string, unknown>).values()].flatMap(nodesOf)
  return typeof word === 'object' && word !== null && 'words' in word && word.words instanceof Map ? [word as Node] : []
}
