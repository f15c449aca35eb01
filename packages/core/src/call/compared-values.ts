import type { ParsedCondition } from '../policy/condition.ts'
import { literalOf, placeOf } from '../policy/wishes.ts'
import { isObject } from '@toolgate/values/json'
import { cut } from '@toolgate/values'

type Tree = NonNullable<ParsedCondition['tree']>
type ComparedLiteral = NonNullable<ReturnType<typeof literalOf>>

const MAX_COMPARED = 5
const MAX_TEXT = 80

interface ComparedOperator {
  readonly holds: (value: ComparedLiteral, literal: ComparedLiteral) => boolean
  /** The comparison that holds, in words. Absent if the value alone is clear. */
  readonly words?: string
}

const COMPARISONS: ReadonlyMap<string, ComparedOperator> = new Map<string, ComparedOperator>([
  ['>', { holds: (value, literal) => value > literal, words: 'more than' }],
  ['>=', { holds: (value, literal) => value >= literal, words: 'at least' }],
  ['<', { holds: (value, literal) => value < literal, words: 'less than' }],
  ['<=', { holds: (value, literal) => value <= literal, words: 'at most' }],
  ['!=', { holds: (value, literal) => value !== literal, words: 'anything but' }],
  ['==', { holds: (value, literal) => value === literal }],
])
const FLIPPED: Readonly<Record<string, string>> = { '>': '<', '>=': '<=', '<': '>', '<=': '>=' }

/**
 * Returns the input fields that a condition compares with constants, as a sentence for the approver: `amount is 150; more
 * than 100 needs a person.` Names only comparisons that hold; empty if there are none.
 *
 * Pass `input` as people may see it: masked values and comparisons with them are left out. With `withoutTexts`, the texts
 * that the condition names are left out, too: they may be other people's.
 */
export function comparedValues(
  condition: Pick<ParsedCondition, 'tree'> | undefined,
  input: unknown,
  { withoutTexts = false } = {},
): string {
  const all = condition?.tree ? sentencesOf(condition.tree, input) : []
  const told = all.map(({ is, wanted, isText }) =>
    wanted === undefined || (withoutTexts && isText) ? is : `${is}; ${wanted} needs a person`,
  )
  const found = [...new Set(told)].slice(0, MAX_COMPARED)
  return found.map((one) => `${one}.`).join(' ')
}

interface ComparedSentence {
  readonly is: string
  /** What the constant demands. Absent if the value alone is clear. */
  readonly wanted: string | undefined
  readonly isText: boolean
}

function sentencesOf(node: Tree, input: unknown): readonly ComparedSentence[] {
  if (node.op === '&&' || node.op === '||') return node.args.flatMap((part: Tree) => sentencesOf(part, input))
  const comparison = COMPARISONS.get(node.op)
  if (!comparison) return []
  const [left, right] = node.args as [Tree, Tree]
  const place = placeOf(left)
  if (place) return sentence(comparison, place, literalOf(right), input)
  const flipped = COMPARISONS.get(FLIPPED[node.op] ?? node.op)
  return flipped ? sentence(flipped, placeOf(right), literalOf(left), input) : []
}

function sentence(
  { holds, words }: ComparedOperator,
  place: ReturnType<typeof placeOf>,
  literal: ComparedLiteral | undefined,
  input: unknown,
): readonly ComparedSentence[] {
  if (place?.on !== 'input' || literal === undefined) return []
  const value = place.field
    .split('.')
    .reduce<unknown>((at, name) => (isObject(at) ? ownOf(at, name) : undefined), input)
  if (typeof value !== typeof literal || !holds(value as ComparedLiteral, literal)) return []
  const is = `${place.field} is ${shown(value as ComparedLiteral)}`
  const wanted = words === undefined ? undefined : `${words} ${shown(literal)}`
  return [{ is, wanted, isText: typeof literal === 'string' }]
}

function ownOf(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function shown(value: ComparedLiteral): string {
  return cut(JSON.stringify(value), MAX_TEXT)
}
