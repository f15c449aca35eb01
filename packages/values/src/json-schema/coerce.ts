import { canonicalize, isObject, type JsonObject } from '../json/json.ts'
import { readJson } from '../json/read-json.ts'
import { spend, type Work } from '../work.ts'
import { compileSchemas } from './compile.ts'
import { createReferences, dialectOf, type References } from './document.ts'
import { type Check, isList } from './run.ts'
import { findSkipped } from './skipped.ts'

/** Returns a value with texts replaced by the values that a schema wants; the same value if there is nothing to replace. */
export type Coercer = (value: unknown, work: Work) => unknown

/** The maximum number of schemas and values within each other. */
const MAX_DEPTH = 64
/** Steps for one schema and one value, for each of their members, and for reading a text as a list or an object. */
const STEPS = 100
const MEMBER_STEPS = 20
const READ_STEPS = 5000

/**
 * Compiles the coercion of a whole document.
 *
 * There is one rule: a text that its schema rejects becomes the JSON value that it spells, if the schema accepts that
 * value. It holds for the value, its properties and its items, through references and combined schemas. A value that a
 * schema accepts stays as it is, and where two branches of a schema lead to different values, nothing is replaced. Every
 * step costs some of the work, so no schema and no value can block the process.
 *
 * @throws {WorkSpentError} when the coercer runs out of work
 */
export function compileCoercer(document: object): Coercer {
  const dialect = dialectOf(document)
  const references = createReferences(document, dialect.draft)
  const checkOf = compileSchemas(document, dialect.draft, findSkipped(document, dialect))
  return (value, work) => new Coercion(checkOf, references, work).coerce(document, value, 0)
}

class Coercion {
  readonly #checkOf: (schema: unknown) => Check
  readonly #references: References
  readonly #work: Work

  constructor(checkOf: (schema: unknown) => Check, references: References, work: Work) {
    this.#checkOf = checkOf
    this.#references = references
    this.#work = work
  }

  coerce(schema: unknown, value: unknown, depth: number): unknown {
    spend(this.#work, STEPS)
    if (!isObject(schema) || depth > MAX_DEPTH || this.#accepts(schema, value)) return value
    if (typeof value === 'string') return this.#ofText(schema, value, depth)
    if (!isList(value) && !isObject(value)) return value
    const targets = REFERENCES.flatMap((keyword) => this.#targetsOf(schema, keyword))
    const whole = [...targets, ...listAt(schema, 'allOf')].reduce(
      (found, part) => this.coerce(part, found, depth + 1),
      value,
    )
    const inner = isList(whole) ? this.#items(schema, whole, depth) : this.#properties(schema, whole, depth)
    const branch = this.#conditional(schema, inner, depth)
    return ['anyOf', 'oneOf'].reduce((found, keyword) => this.#branch(listAt(schema, keyword), found, depth), branch)
  }

  #accepts(schema: unknown, value: unknown): boolean {
    return this.#checkOf(schema)(value, { work: this.#work, violation: undefined, depth: 0, scope: [] }, undefined)
  }

  #ofText(schema: JsonObject, text: string, depth: number): unknown {
    spend(this.#work, text.length)
    if (OPENS.test(text)) spend(this.#work, READ_STEPS + 4 * text.length)
    const read = valueOf(text)
    if (read === undefined) return text
    const value = this.coerce(schema, read, depth + 1)
    return this.#accepts(schema, value) ? value : text
  }

  #targetsOf(schema: JsonObject, keyword: string): readonly unknown[] {
    const reference = schema[keyword]
    return typeof reference === 'string' ? this.#references.find(reference, schema) : []
  }

  #items(schema: JsonObject, list: readonly unknown[], depth: number): unknown {
    const { items, prefixItems, additionalItems } = schema
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
    const rest = Array.isArray(items) ? additionalItems : items
    spend(this.#work, MEMBER_STEPS * list.length)
    const coerced = list.map((item, i) => this.coerce(i < first.length ? first[i] : rest, item, depth + 1))
    return coerced.some((item, i) => item !== list[i]) ? coerced : list
  }

  #properties(schema: JsonObject, object: unknown, depth: number): unknown {
    if (!isObject(object)) return object
    const { properties, patternProperties, additionalProperties } = schema
    const named = isObject(properties) ? properties : {}
    // Which patterns match a name is not asked: these properties stay as they are.
    const others = isObject(patternProperties) ? undefined : additionalProperties
    const members = Object.entries(object)
    spend(this.#work, MEMBER_STEPS * members.length)
    const entries = members.map(([name, value]): [string, unknown] => [
      name,
      this.coerce(Object.hasOwn(named, name) ? named[name] : others, value, depth + 1),
    ])
    return entries.some(([name, value]) => value !== object[name]) ? Object.fromEntries(entries) : object
  }

  #conditional(schema: JsonObject, value: unknown, depth: number): unknown {
    if (schema['if'] === undefined) return value
    return this.coerce(schema[this.#accepts(schema['if'], value) ? 'then' : 'else'], value, depth + 1)
  }

  /** Returns the only value that a branch accepts after coercion. */
  #branch(branches: readonly unknown[], value: unknown, depth: number): unknown {
    if (branches.some((branch) => this.#accepts(branch, value))) return value
    const found = new Map<string, unknown>()
    for (const branch of branches) {
      const coerced = this.coerce(branch, value, depth + 1)
      if (coerced === value || !this.#accepts(branch, coerced)) continue
      const text = canonicalize(coerced)
      spend(this.#work, 10 * text.length)
      found.set(text, coerced)
    }
    const [only] = found.values()
    return found.size === 1 ? only : value
  }
}

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'] as const

function listAt(schema: JsonObject, keyword: string): readonly unknown[] {
  const list = schema[keyword]
  return Array.isArray(list) ? list : []
}

/** The words of JSON, and Python's spelling of `true` and `false`, which models write too. */
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
  ['True', true],
  ['False', false],
])

/** Returns the value that a text spells as JSON; `undefined` if there is none, or if it is a text itself. */
function valueOf(text: string): unknown {
  const plain = text.trim()
  if (WORDS.has(plain)) return WORDS.get(plain)
  if (!OPENS.test(text) && !NUMBER.test(plain)) return undefined
  try {
    const value = readJson(text, { integers: 'exact' })
    return typeof value === 'number' && !hasAllDigits(plain) ? undefined : value
  } catch {
    return undefined
  }
}

const OPENS = /^\s*[[{]/
/** RFC 8259, section 6. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Whether a number as JSON reads it has all the digits of its text. A double holds 15 digits of any number. */
function hasAllDigits(text: string): boolean {
  if (/^-?\d+$/.test(text)) return true
  const [digits = ''] = text.split(/[eE]/, 1)
  return digits.replace(/^-?0*\.?0*/, '').replace('.', '').length <= 15
}
