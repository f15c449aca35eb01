import { createRequire } from 'node:module'
import type { Ajv, AnySchemaObject, ErrorObject, Options, ValidateFunction } from 'ajv'
import { canonicalize } from '../canonical.ts'
import { messageOf } from '../errors.ts'
import type { InputProblem, ValidateInput } from '../ports.ts'
import { DRAFT_07 } from '../tools/schema.ts'

/** Loaded at the first call of a tool: compiling a schema is not needed to list it. */
const require = createRequire(import.meta.url)

/**
 * Gives a validator of JSON Schema draft-07 and 2020-12, chosen by `$schema` (2020-12 where it says nothing).
 *
 * Each schema is compiled once, at its first use. Schemas are somebody else's text: `pattern` and `uniqueItems` take
 * linear time, references end after a million steps, nothing remote is fetched, and a schema that cannot be used
 * refuses every input.
 * `format` is an annotation, as 2020-12 has it by default.
 */
export function createValidator(): ValidateInput {
  const compiled = new WeakMap<object, ValidateFunction | string>()
  return (schema, input) => {
    let validate = compiled.get(schema)
    if (validate === undefined) {
      validate = compile(schema)
      compiled.set(schema, validate)
    }
    if (typeof validate === 'string')
      return { pointer: '', message: `cannot be checked, because the tool's own schema cannot be used: ${validate}` }
    return check(validate, input)
  }
}

/** How often references may be followed for one input: each may be twice in the next, which doubles at every level. */
const MAX_STEPS = 1_000_000
let stepsLeft = 0

function countStep(): void {
  if (--stepsLeft < 0) throw new Error(`it takes more than ${MAX_STEPS} steps`)
}

function check(validate: ValidateFunction, input: unknown): InputProblem | undefined {
  stepsLeft = MAX_STEPS
  try {
    return validate(input) ? undefined : toProblem(validate.errors?.[0])
  } catch (error) {
    return { pointer: '', message: `cannot be checked against the tool's schema: ${messageOf(error)}` }
  }
}

/** ajv keeps all that it has compiled, for tools that are gone too; a new one has nothing to keep. */
const MAX_SCHEMAS = 1000
const compilers = new Map<'2020' | '07', { readonly ajv: Ajv; schemas: number }>()

function compile(schema: AnySchemaObject): ValidateFunction | string {
  // The schema is checked against its own schema first.
  stepsLeft = MAX_STEPS
  try {
    return ajvFor(DRAFT_07.test(String(schema['$schema'])) ? '07' : '2020').compile(schema)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function ajvFor(draft: '2020' | '07'): Ajv {
  let compiler = compilers.get(draft)
  if (!compiler || compiler.schemas >= MAX_SCHEMAS) {
    compiler = { ajv: createAjv(draft), schemas: 0 }
    compilers.set(draft, compiler)
  }
  compiler.schemas++
  return compiler.ajv
}

function createAjv(draft: '2020' | '07'): Ajv {
  const { default: Class } = require(draft === '07' ? 'ajv' : 'ajv/dist/2020.js') as {
    default: new (options: Options) => Ajv
  }
  const ajv = new Class({
    strict: false,
    validateFormats: false,
    ownProperties: true,
    addUsedSchema: false,
    logger: false,
    code: { regExp: Object.assign(linearRegExp, { code: 'linearRegExp' }), process: countSteps },
  })
  ajv.removeKeyword('uniqueItems').addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (unique: boolean, items: readonly unknown[]) => !unique || allDiffer(items),
    error: { message: 'must NOT have duplicate items' },
  })
  return Object.assign(ajv, { countStep })
}

/** Every function that ajv writes, one for each subschema that is referred to, begins with this declaration. */
function countSteps(code: string): string {
  return code.replace('let vErrors = null;', 'self.countStep();let vErrors = null;')
}

/** JSON Schema takes `1` and `1.0`, and objects whose keys are in another order, for equal: as RFC 8785 does. */
function allDiffer(items: readonly unknown[]): boolean {
  return new Set(items.map(canonicalize)).size === items.length
}

/**
 * The patterns of the meta-schemas themselves: linear in any engine. Reading the first schema needs them, and most
 * schemas have none of their own, so the other engine is often never loaded (7 MB, 30 ms).
 */
const META_SCHEMA_PATTERNS: ReadonlySet<string> = new Set([
  '^[^#]*#?$',
  '^[A-Za-z_][-A-Za-z0-9._]*$',
  '^[A-Za-z][-A-Za-z0-9.:_]*$',
])

/** ajv keeps what this gives under its text, so the text must be the pattern. */
function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  return { test: META_SCHEMA_PATTERNS.has(pattern) ? backtracking(pattern) : linear(pattern), toString: () => pattern }
}

function backtracking(pattern: string): (text: string) => boolean {
  const compiled = new RegExp(pattern, 'u')
  return (text) => compiled.test(text)
}

function linear(pattern: string): (text: string) => boolean {
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const compiled = RE2JS.compile(pattern)
  return (text) => compiled.matcher(text).find()
}

function toProblem(error: ErrorObject | undefined): InputProblem {
  const { instancePath = '', keyword, message = 'is not valid', params = {} } = error ?? {}
  if (keyword === 'additionalProperties') {
    return {
      pointer: `${instancePath}/${toPointerToken(String(params['additionalProperty']))}`,
      message: 'is not a known property',
    }
  }
  if (keyword === 'enum') return { pointer: instancePath, message: `must be one of ${listed(params['allowedValues'])}` }
  return { pointer: instancePath, message }
}

/** RFC 6901 §3. */
function toPointerToken(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

const MAX_LISTED = 20

function listed(values: unknown): string {
  return Array.isArray(values)
    ? values
        .slice(0, MAX_LISTED)
        .map((value) => JSON.stringify(value))
        .join(', ')
    : ''
}
