import type { CelNode } from './cel-tree.ts'

/** A change of a caller or an input that makes one comparison true or false. */
export interface Wish {
  readonly on: 'caller' | 'input'
  /** `add` and `remove` change an entry of a list. */
  readonly does: 'add' | 'remove' | 'set'
  /** The path of the field, such as `roles`, `attributes.team` or `order.id`. */
  readonly field: string
  readonly value: string | number | boolean
}

/** Wishes that together make a condition true or false. */
export type WishList = readonly Wish[]

const MAX_LISTS = 12

/**
 * Returns the ways to make a condition `wanted`, each a list of wishes. Parts that cannot be analysed are left unchanged,
 * so a way may not be enough: decide again.
 */
export function wishesFor(node: CelNode, wanted: boolean): readonly WishList[] {
  switch (node.op) {
    case '!_':
      return wishesFor(node.args, !wanted)
    case '&&':
    case '||': {
      const parts = node.args.map((part: CelNode) => wishesFor(part, wanted))
      return (node.op === '&&') === wanted ? joined(parts) : parts.flat().slice(0, MAX_LISTS)
    }
    case '==':
    case '!=':
      return ofEquality(node.args, (node.op === '==') === wanted)
    case 'in':
      return ofMembership(node.args, wanted)
    default: {
      const place = placeOf(node)
      return place?.field ? [[{ ...place, does: 'set', value: wanted }]] : AS_IT_IS
    }
  }
}

const AS_IT_IS: readonly WishList[] = [[]]

/** Returns every combination of one list from each part. */
export function joined<T>(parts: readonly (readonly (readonly T[])[])[], max = MAX_LISTS): readonly (readonly T[])[] {
  return parts.reduce<readonly (readonly T[])[]>(
    (lists, part) =>
      lists
        .flatMap((list) => part.map((more) => [...list, ...more]))
        .toSorted((a, b) => a.length - b.length)
        .slice(0, max),
    [[]],
  )
}

type Pair = readonly CelNode[]

function ofEquality([left, right]: Pair, wanted: boolean): readonly WishList[] {
  if (!left || !right || !wanted) return AS_IT_IS
  const place = placeOf(left) ?? placeOf(right)
  const value = literalOf(left) ?? literalOf(right)
  if (!place?.field || value === undefined) return AS_IT_IS
  return [[{ ...place, does: 'set', value }]]
}

function ofMembership([item, list]: Pair, wanted: boolean): readonly WishList[] {
  if (!item || !list) return AS_IT_IS
  const [value, place] = [literalOf(item), placeOf(list)]
  if (value !== undefined && place?.field) return [[{ ...place, does: wanted ? 'add' : 'remove', value }]]
  const at = placeOf(item)
  if (!wanted || !at?.field || list.op !== 'list') return AS_IT_IS
  const lists = list.args.flatMap((one: CelNode): WishList[] => {
    const named = literalOf(one)
    return named === undefined ? [] : [[{ ...at, does: 'set', value: named }]]
  })
  return lists.length === 0 ? AS_IT_IS : lists.slice(0, MAX_LISTS)
}

/** Returns the value of a literal; `undefined` for anything else. */
export function literalOf({ op, args }: CelNode): Wish['value'] | undefined {
  if (op !== 'value') return undefined
  if (typeof args === 'bigint') return Number(args)
  return typeof args === 'string' || typeof args === 'number' || typeof args === 'boolean' ? args : undefined
}

/** Returns the field of the caller or the input that a node reads; '' for the whole object. */
export function placeOf(node: CelNode): Pick<Wish, 'on' | 'field'> | undefined {
  if (node.op === 'id')
    return node.args === 'caller' || node.args === 'input' ? { on: node.args, field: '' } : undefined
  if (node.op !== '.' && node.op !== '[]') return undefined
  const [of, key] = node.args
  const before = placeOf(of)
  const name = typeof key === 'string' ? key : literalOf(key)
  if (!before || typeof name !== 'string' || name.includes('.')) return undefined
  return { on: before.on, field: before.field === '' ? name : `${before.field}.${name}` }
}
