import { sha256Hex, sizeOf, ToolgateError } from '@toolgate/values'
import { canonicalize, escapePointer, isObject, unescapePointer } from '@toolgate/values/json'
import type { Grant, GrantedField, NamedField } from '../ports/grants.ts'

/** The most characters of an input that a grant covers, without the fields that are left free. */
export const MAX_GRANTED_CHARS = 16_000
const MAX_FIELDS = 100

type GrantedFields = Readonly<Record<string, GrantedField>>

/**
 * Returns the fields that may differ from an approved input, by pointer.
 *
 * A pointer names one place of the approved input, so a typing error is an error and never a wider grant.
 *
 * @throws {ToolgateError} `grant_invalid`, naming the field
 */
export function parseFields(input: unknown, named: Readonly<Record<string, NamedField>>): GrantedFields {
  const entries = Object.entries(named)
  if (entries.length === 0) throw invalid('The field "fields" names no field. Leave one free, or cover the input.')
  if (entries.length > MAX_FIELDS) throw invalid(`The field "fields" names more than ${MAX_FIELDS} fields.`)
  const rules = new Map<string, GrantedField | undefined>()
  for (const [name, rule] of entries) {
    const pointer = toPointer(name)
    const other = [...rules.keys()].find((known) => isWithin(known, pointer) || isWithin(pointer, known))
    if (other !== undefined) throw invalid(`The field ${quoted(name)} is named twice, or lies within another one.`)
    rules.set(pointer, parseRule(input, name, pointer, rule))
  }
  const free = [...rules].filter((entry): entry is [string, GrantedField] => entry[1] !== undefined)
  return Object.fromEntries(free)
}

/** Returns the rule of a field that may differ; `undefined` for one that states the approved value. */
function parseRule(input: unknown, name: string, pointer: string, rule: unknown): GrantedField | undefined {
  const [key, ...more] = isObject(rule) ? Object.keys(rule) : []
  if (!isObject(rule) || key === undefined || more.length > 0 || !['any', 'upTo', 'is'].includes(key))
    throw invalid(`The field ${quoted(name)} needs one of "any": true, "upTo": a number, and "is": the approved value.`)
  const place = find(input, pointer)
  switch (key) {
    case 'any':
      if (rule['any'] !== true) throw invalid(`The field ${quoted(name)} can only be "any": true.`)
      if (!place.mayBe) throw invalid(`The approved input has no place ${quoted(name)}.`)
      return { any: true }
    case 'is':
      if (!place.has) throw invalid(`The approved input has no field ${quoted(name)}.`)
      if (canonicalOf(rule['is']) !== canonicalize(place.value))
        throw invalid(`The field ${quoted(name)} has another value in the approved input.`)
      return undefined
    default:
      return toBounds(place, name, rule['upTo'])
  }
}

function toBounds({ value }: FoundField, name: string, upTo: unknown): GrantedField {
  if (!isNumber(value)) throw invalid(`The field ${quoted(name)} is not a number in the approved input.`)
  if (!isNumber(upTo)) throw invalid(`The upper bound of ${quoted(name)} must be a number.`)
  if (value > upTo) throw invalid(`The upper bound of ${quoted(name)} is below the approved value.`)
  // Nobody who approves "up to 200" means a negative amount.
  return { from: value < 0 ? value : 0, upTo }
}

function canonicalOf(value: unknown): string | undefined {
  try {
    return canonicalize(value)
  } catch {
    return undefined
  }
}

/**
 * Returns the part of an approved input that must stay equal, and its hash.
 *
 * @throws {ToolgateError} `grant_invalid` if that part is too long to be granted
 */
export function fixedPart(input: unknown, fields: GrantedFields = {}): Required<Pick<Grant, 'input' | 'inputHash'>> {
  const rest = restOf(input, fields)
  if (rest === undefined)
    throw invalid(`An input of more than ${MAX_GRANTED_CHARS} characters cannot be granted. Cover the tool instead.`)
  return { input: rest, inputHash: sha256Hex(canonicalize(rest)) }
}

/**
 * Returns whether a grant covers an input: the bounded fields are numbers within their bounds, and all that is neither
 * bounded nor free is equal to the approved input. `null` and an absent field differ, and so do 200 and "200".
 */
export function coversInput({ covers, fields = {}, inputHash }: Grant, input: unknown): boolean {
  if (covers === 'tool') return true
  const isWithinBounds = Object.entries(fields).every(([pointer, rule]) => {
    if ('any' in rule) return true
    const { value } = find(input, pointer)
    return isNumber(value) && value >= rule.from && value <= rule.upTo
  })
  if (!isWithinBounds || inputHash === undefined) return false
  const rest = restOf(input, fields)
  return rest !== undefined && sha256Hex(canonicalize(rest)) === inputHash
}

/** Returns an input without some fields; `undefined` if the rest is too long to be granted. */
function restOf(input: unknown, fields: GrantedFields): unknown {
  const rest = Object.keys(fields).length === 0 ? input : without(input, toTree(fields))
  return sizeOf(rest, MAX_GRANTED_CHARS) > MAX_GRANTED_CHARS ? undefined : rest
}

/** The places that are left out of a value: itself, if it has none below. */
type CutTree = ReadonlyMap<string, CutTree>

function toTree(fields: GrantedFields): CutTree {
  const root = new Map<string, CutTree>()
  for (const pointer of Object.keys(fields)) {
    let at: Map<string, CutTree> = root
    for (const step of stepsOf(pointer)) {
      const next = (at.get(step) as Map<string, CutTree> | undefined) ?? new Map<string, CutTree>()
      at.set(step, next)
      at = next
    }
  }
  return root
}

/** Leaves fields out of objects. In a list, `null` takes the place of an item, so that its length stays. */
function without(value: unknown, tree: CutTree): unknown {
  const cut = (item: unknown, below: CutTree | undefined) => (below ? without(item, below) : item)
  if (Array.isArray(value))
    return value.map((item: unknown, i) => (tree.get(String(i))?.size === 0 ? null : cut(item, tree.get(String(i)))))
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([key]) => tree.get(key)?.size !== 0)
  return Object.fromEntries(kept.map(([key, item]) => [key, cut(item, tree.get(key))]))
}

interface FoundField {
  readonly has: boolean
  /** Whether the place exists or its object could have such a field. */
  readonly mayBe: boolean
  readonly value?: unknown
}

const NOWHERE: FoundField = { has: false, mayBe: false }

function find(input: unknown, pointer: string): FoundField {
  let at: FoundField = { has: true, mayBe: false, value: input }
  for (const step of stepsOf(pointer)) {
    const value: unknown = at.value
    if (Array.isArray(value)) {
      if (!INDEX.test(step) || Number(step) >= value.length) return NOWHERE
      at = { has: true, mayBe: true, value: value[Number(step)] }
    } else if (isObject(value)) {
      const has = Object.hasOwn(value, step)
      at = has ? { has, mayBe: true, value: value[step] } : { has, mayBe: true }
    } else return NOWHERE
  }
  return at
}

const INDEX = /^(?:0|[1-9]\d{0,9})$/

/** Returns the pointer of a name: a text that begins with `/` is one, any other is the name of a field of the input. */
function toPointer(name: string): string {
  const steps = name.startsWith('/') ? stepsOf(name) : [name]
  return steps.map((step) => `/${escapePointer(step)}`).join('')
}

function stepsOf(pointer: string): readonly string[] {
  return pointer.slice(1).split('/').map(unescapePointer)
}

function isWithin(pointer: string, outer: string): boolean {
  return pointer === outer || pointer.startsWith(`${outer}/`)
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}

function invalid(message: string): ToolgateError {
  return new ToolgateError('grant_invalid', message)
}
