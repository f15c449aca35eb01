import type { RunFacts } from '../history/facts.ts'
import { type EarlierCall, type FactRead, type OriginOfValue, ORIGINS } from '../ports/fact-read.ts'
import { addresseesIn } from '../policy/addressees.ts'
import { ADDRESSEES, type RunRead } from '../policy/run-functions.ts'
import type { RunUse } from '../policy/run-use.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { isObject } from '@toolgate/values/json'

/** One evaluation of a clause that reads the run. */
interface ClauseEvaluation {
  readonly tool: Tool
  readonly input: unknown
  readonly facts?: RunFacts | undefined
  readonly reads?: readonly RunRead[] | undefined
}

const MAX_NAMED = 5
/** The most items whose values are looked up, because a condition may ask about each of many items. */
const MAX_DETAILED = 8

/**
 * Returns the facts that counted against a call in the last evaluation of a clause; `undefined` if the history of its run
 * is unknown.
 */
export function readsOf(
  snapshot: Toolset,
  use: RunUse | undefined,
  { tool, input, facts, reads }: ClauseEvaluation,
): readonly FactRead[] | undefined {
  if (!use || !facts || !reads || facts.isUnknown) return undefined
  const labels = use.labels.filter((label) => facts.labels.includes(label))
  return [
    ...labels.map((of): FactRead => toRead({ kind: 'label', of }, facts.raisedBy?.(of))),
    ...reads.map((one, i): FactRead => {
      const isDetailed = i < MAX_DETAILED
      if ('origin' in one) {
        const { of, origin, value } = one
        const asked = of === ADDRESSEES ? fieldsOf(tool, input) : [{ value }]
        return { kind: 'origin', of, origin, ...(isDetailed && { values: worstOf(asked, facts) }) }
      }
      const { pattern, wanted } = one
      const { event, selector, fields } = pattern
      const named = snapshot.tools.filter((other) => matchesSelector(selector, other, 'possible'))
      return {
        ...toRead({ kind: event, of: selector.text }, isDetailed ? facts.matchedBy?.(pattern, wanted) : undefined),
        fields,
        ...(isDetailed && wanted.length > 0 && { wanted }),
        tools: named.slice(0, MAX_NAMED).map(({ id }) => id),
      }
    }),
  ]
}

function toRead(read: Pick<FactRead, 'kind' | 'of'>, calls: readonly EarlierCall[] = []): FactRead {
  return { ...read, tools: calls.map(({ tool }) => tool), ...(calls.length > 0 && { calls }) }
}

/** Returns the values of a call's addressees, each with its field. */
export function fieldsOf({ addressees }: Tool, input: unknown): readonly AskedRead[] {
  return addressees.flatMap((field) => addresseesIn(input, [field]).map((value) => ({ field, value })))
}

interface AskedRead {
  readonly field?: string
  readonly value: unknown
}

const MAX_LOOKED_AT = 32
const MAX_VALUES = 5

/** Returns the parts of values that are neither the user's nor trusted, the worst first. */
function worstOf(asked: readonly AskedRead[], facts: RunFacts): readonly OriginOfValue[] {
  return originsOf(asked, facts)
    .filter(({ origin }) => origin === 'untrusted' || origin === 'unknown')
    .toSorted((a, b) => ORIGINS.indexOf(a.origin) - ORIGINS.indexOf(b.origin))
    .slice(0, MAX_VALUES)
}

/** Returns the origin of each of the first parts of values. */
export function originsOf(asked: readonly AskedRead[], facts: Pick<RunFacts, 'origin'>): readonly OriginOfValue[] {
  const found: OriginOfValue[] = []
  for (const { field, value } of asked)
    for (const [at, leaf] of leavesOf(value, field)) {
      if (found.length >= MAX_LOOKED_AT) return found
      found.push({ ...(at !== undefined && { field: at }), value: leaf, origin: facts.origin(leaf) })
    }
  return found
}

/** Returns each part of a value, with its field. Keys of objects count too, because a key may be an address. */
function* leavesOf(
  value: unknown,
  field: string | undefined,
): Generator<readonly [field: string | undefined, leaf: unknown]> {
  if (Array.isArray(value)) for (const item of value) yield* leavesOf(item, field)
  else if (isObject(value))
    for (const [key, item] of Object.entries(value)) {
      yield [field, key]
      yield* leavesOf(item, field === undefined ? key : `${field}.${key}`)
    }
  else if (value !== undefined && value !== null && value !== '') yield [field, value]
}
