import { isBeyondExact, toComparable } from '../json/integers.ts'
import { toJsonText } from '../json/json-text.ts'
import { spend, type Work } from '../work.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { isUntil } from './document.ts'
import {
  type Check,
  isList,
  isNumber,
  isString,
  KEY_STEPS,
  type Keyword,
  type MakeCheck,
  reads,
  refuse,
} from './run.ts'

const TYPE_TESTS: ReadonlyMap<string, (value: unknown) => boolean> = new Map<string, (value: unknown) => boolean>([
  ['null', (value) => value === null],
  ['boolean', (value) => typeof value === 'boolean'],
  ['object', isObject],
  ['array', Array.isArray],
  ['number', isNumber],
  ['string', (value) => typeof value === 'string'],
  ['integer', isExactInteger],
])

/** Beyond 2^53 only a `bigint` is exact, because a `number` may stand for several integers. */
function isExactInteger(value: unknown): boolean {
  return Number.isSafeInteger(value) || typeof value === 'bigint'
}

const ROUNDED = ', and a number beyond 2^53 may have been rounded: send it as text (a JSON string)'

const type = reads(isNameOrNames, (types, { nullable }) => {
  const listed = typeof types === 'string' ? [types] : types
  // OpenAPI 3.0 says `nullable` where JSON Schema says `type: [..., "null"]`.
  const names = nullable === true ? [...listed, 'null'] : listed
  const tests = names.flatMap((name) => TYPE_TESTS.get(name) ?? [])
  const message = `must be ${listed.join(',')}`
  const only = tests.length === 1 ? tests[0] : undefined
  const passes = only ?? ((value: unknown) => tests.some((test) => test(value)))
  const explains = names.includes('integer')
  return (value, run) =>
    passes(value) ||
    refuse(run, explains && typeof value === 'number' && isBeyondExact(value) ? message + ROUNDED : message)
})

function isNameOrNames(value: unknown): value is string | readonly string[] {
  return isString(value) || isNames(value)
}

function isNames(value: unknown): value is readonly string[] {
  return isList(value) && value.every(isString)
}

const MAX_LISTED = 20

const enumeration = reads(isList, (values) => {
  const plain = new Set(values.filter((value) => typeof value !== 'object' || value === null).map(toComparable))
  const objects = values.filter((value) => typeof value === 'object' && value !== null)
  if (values.length === 0) return (_, run) => refuse(run, 'is not allowed: its enum lists no value')
  const message = `must be one of ${values
    .slice(0, MAX_LISTED)
    .map((value) => toJsonText(value))
    .join(', ')}`
  return (value, run) =>
    (typeof value === 'object' && value !== null
      ? objects.some((choice) => isEqual(choice, value, run.work))
      : plain.has(toComparable(value))) || refuse(run, message)
})

const constant: MakeCheck<unknown> = (expected) => (value, run) =>
  isEqual(expected, value, run.work) || refuse(run, 'must be equal to constant')

/** JavaScript compares a `number` and a `bigint` as mathematics does. */
type Passes = (value: number | bigint, bound: number | bigint) => boolean

function limit(sign: string, passes: Passes): MakeCheck<number | bigint> {
  return reads(isNumber, (bound) => (value, run) => passes(value, bound) || refuse(run, `must be ${sign} ${bound}`))
}

const BELOW = limit('<', (value, max) => value < max)
const ABOVE = limit('>', (value, min) => value > min)

/** In draft-04, `exclusiveMaximum: true` excludes the bound of `maximum` itself. */
function inclusiveBound(sign: string, exclusive: string, passes: Passes): MakeCheck<number | bigint> {
  const inclusive = limit(sign, passes)
  const exclusively = sign === '<=' ? BELOW : ABOVE
  return (given, schema, compiling) =>
    (schema[exclusive] === true && isUntil(compiling.draft, 'draft-04') ? exclusively : inclusive)(
      given,
      schema,
      compiling,
    )
}

/** A bound of its own since draft-06. */
function exclusiveBound(make: MakeCheck<number | bigint>): MakeCheck<number | bigint> {
  return (given, schema, compiling) => (typeof given === 'boolean' ? undefined : make(given, schema, compiling))
}

const multipleOf = reads(isNumber, (divisor) => (value: number | bigint, run) => {
  const passes =
    typeof value === 'number' && typeof divisor === 'number'
      ? isMultiple(value, divisor)
      : isExactMultiple(toDecimal(value), toDecimal(divisor))
  return passes || refuse(run, `must be multiple of ${divisor}`)
})

/** Exact for integers. Other numbers are compared with a tolerance for rounding: 19.99 is a multiple of 0.01. */
function isMultiple(value: number, divisor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0
  const quotient = value / divisor
  return Math.abs(quotient - Math.round(quotient)) <= 4 * Number.EPSILON * Math.abs(quotient)
}

/** A number as `digits` * 10^-`places`. */
interface Decimal {
  readonly digits: bigint
  readonly places: number
}

function toDecimal(value: number | bigint): Decimal {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const places = fraction.length - Number(exponent)
  const digits = BigInt(whole + fraction)
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 }
}

function isExactMultiple(value: Decimal, divisor: Decimal): boolean {
  const places = Math.max(value.places, divisor.places)
  const scaled = (one: Decimal) => one.digits * 10n ** BigInt(places - one.places)
  return scaled(value) % scaled(divisor) === 0n
}

const LENGTH_CHARS_PER_STEP = 2

/** Checks the number of code points: at most the number of code units, and at least half of it. */
function isLength(text: string, passes: (length: number) => boolean, spendOn: (steps: number) => void): boolean {
  if (passes(text.length) === passes(Math.ceil(text.length / 2))) return passes(text.length)
  spendOn(text.length / LENGTH_CHARS_PER_STEP)
  let points = text.length
  for (let i = 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 0xdc00 && code < 0xe000) {
      const before = text.charCodeAt(i - 1)
      if (before >= 0xd800 && before < 0xdc00) points--
    }
  }
  return passes(points)
}

function length(most: boolean): MakeCheck<string> {
  return reads(
    isNumber,
    (bound) => (value, run) =>
      isLength(
        value,
        (points) => (most ? points <= bound : points >= bound),
        (steps) => spend(run.work, steps),
      ) || refuse(run, `must NOT have ${most ? 'more' : 'fewer'} than ${bound} characters`),
  )
}

const MAX_PATTERN_SHOWN = 300

const pattern = reads(isString, (source, _, compiling) => {
  const compiled = compiling.pattern(source)
  if (!compiled) return undefined
  const message = `must match pattern "${source.length > MAX_PATTERN_SHOWN ? `${source.slice(0, MAX_PATTERN_SHOWN)}…` : source}"`
  return (value: string, run) => compiled.test(value, run.work) || refuse(run, message)
})

function count<Value>(what: string, most: boolean, sizeOf: (value: Value) => number): MakeCheck<Value> {
  const steps = what === 'properties' ? KEY_STEPS : 0
  return reads(isNumber, (bound) => (value, run) => {
    const size = sizeOf(value)
    spend(run.work, size * steps)
    return (
      (most ? size <= bound : size >= bound) ||
      refuse(run, `must NOT have ${most ? 'more' : 'fewer'} than ${bound} ${what}`)
    )
  })
}

const itemsOf = (value: readonly unknown[]) => value.length
const propertiesOf = (value: JsonObject) => Object.keys(value).length

const uniqueItems: MakeCheck<readonly unknown[]> = (isWanted) =>
  isWanted ? (value, run) => allDiffer(value, run.work) || refuse(run, 'must NOT have duplicate items') : undefined

const required = reads(isNames, (names) => (value: JsonObject, run) => {
  spend(run.work, names.length)
  for (const name of names) if (!Object.hasOwn(value, name)) return refuse(run, `must have required property '${name}'`)
  return true
})

function dependency(name: string, names: readonly string[]): Check<JsonObject> {
  return (value, run) => {
    if (!Object.hasOwn(value, name)) return true
    spend(run.work, names.length)
    const missing = names.find((other) => !Object.hasOwn(value, other))
    return missing === undefined || refuse(run, `must have property ${missing} when property ${name} is present`)
  }
}

function isNameMap(value: unknown): value is Readonly<Record<string, readonly string[]>> {
  return isObject(value) && Object.values(value).every(isNames)
}

export const dependentRequired = reads(isNameMap, (lists): Check<JsonObject> => {
  const checks = Object.entries(lists).map(([name, names]) => dependency(name, names))
  return (value, run) => {
    spend(run.work, checks.length)
    return checks.every((check) => check(value, run, undefined))
  }
})

/** Keywords that look at one value alone. */
export const PLAIN_KEYWORDS: readonly Keyword[] = [
  { name: 'type', about: 'type', make: type },
  { name: 'maximum', about: 'number', make: inclusiveBound('<=', 'exclusiveMaximum', (value, max) => value <= max) },
  { name: 'minimum', about: 'number', make: inclusiveBound('>=', 'exclusiveMinimum', (value, min) => value >= min) },
  { name: 'exclusiveMaximum', about: 'number', since: 'draft-06', make: exclusiveBound(BELOW) },
  { name: 'exclusiveMinimum', about: 'number', since: 'draft-06', make: exclusiveBound(ABOVE) },
  { name: 'multipleOf', about: 'number', make: multipleOf },
  { name: 'maxLength', about: 'string', make: length(true) },
  { name: 'minLength', about: 'string', make: length(false) },
  { name: 'pattern', about: 'string', make: pattern },
  { name: 'const', about: 'any', since: 'draft-06', make: constant },
  { name: 'enum', about: 'any', make: enumeration },
  { name: 'maxItems', about: 'array', make: count('items', true, itemsOf) },
  { name: 'minItems', about: 'array', make: count('items', false, itemsOf) },
  { name: 'uniqueItems', about: 'array', make: uniqueItems },
  { name: 'maxProperties', about: 'object', make: count('properties', true, propertiesOf) },
  { name: 'minProperties', about: 'object', make: count('properties', false, propertiesOf) },
  { name: 'required', about: 'object', make: required },
  { name: 'dependentRequired', about: 'object', since: '2019-09', make: dependentRequired },
]

const NODE_STEPS = 4
/** How many characters are compared or copied in one step. */
const CHARS_PER_STEP = 16

/** Returns whether two JSON values are equal. `1` equals `1.0`, also beyond 2^53, and the order of keys does not matter. */
function isEqual(a: unknown, b: unknown, work: Work): boolean {
  if (typeof a === 'string') {
    if (typeof b !== 'string' || a.length !== b.length) return false
    spend(work, NODE_STEPS + a.length / CHARS_PER_STEP)
    return a === b
  }
  spend(work, NODE_STEPS)
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i], work))
  if (!isObject(a) || !isObject(b)) return toComparable(a) === toComparable(b)
  const keys = Object.keys(a)
  spend(work, keys.length * NODE_STEPS)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key], work))
  )
}

const ITEM_STEPS = 36
const HASHED_CHARS = 64

/** Returns whether no two items are equal. Takes linear time, and steps for comparing items with equal hashes. */
function allDiffer(items: readonly unknown[], work: Work): boolean {
  const plain = new Set<unknown>()
  const alike = new Map<number, unknown[]>()
  for (const item of items) {
    spend(work, ITEM_STEPS)
    if (typeof item !== 'object' || item === null) {
      if (typeof item === 'string') spend(work, item.length / CHARS_PER_STEP)
      const own = toComparable(item)
      if (plain.has(own)) return false
      plain.add(own)
      continue
    }
    const hash = hashOf(item, work)
    const others = alike.get(hash)
    if (others?.some((other) => isEqual(other, item, work))) return false
    if (others) others.push(item)
    else alike.set(hash, [item])
  }
  return true
}

/** Returns equal hashes for equal values. */
function hashOf(value: unknown, work: Work): number {
  spend(work, NODE_STEPS)
  if (typeof value === 'string') return hashText(value, work)
  const own = toComparable(value)
  if (typeof own === 'bigint') return mix(3, Number(BigInt.asIntN(32, own)))
  if (typeof value === 'number') return mix(3, Math.trunc(value) | 0, (value * 1_000_003) | 0)
  if (Array.isArray(value)) return value.reduce<number>((hash, item) => mix(hash, hashOf(item, work)), value.length)
  if (!isObject(value)) return value === null ? 1 : value === true ? 2 : 4
  // The order of keys does not matter, so their hashes are added.
  let hash = 0
  for (const key of Object.keys(value)) hash = (hash + mix(hashText(key, work), hashOf(value[key], work))) | 0
  return hash
}

function hashText(text: string, work: Work): number {
  const half = HASHED_CHARS / 2
  const sample = text.length <= HASHED_CHARS ? text : text.slice(0, half) + text.slice(-half)
  spend(work, sample.length / 2)
  let hash = text.length
  for (let i = 0; i < sample.length; i++) hash = (Math.imul(hash, 31) + sample.charCodeAt(i)) | 0
  return hash
}

function mix(...numbers: readonly number[]): number {
  let hash = 7
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x9e3779b1)
  return hash ^ (hash >>> 15)
}
