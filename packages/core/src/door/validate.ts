import { createRequire } from 'node:module'
import type { Ajv, AnySchemaObject, ErrorObject, Options, ValidateFunction } from 'ajv'
import type { InputProblem, ValidateInput } from '../ports.ts'

/** Loaded at the first call of a tool: compiling a schema is not needed to list it. */
const require = createRequire(import.meta.url)

/**
 * Gives a validator of JSON Schema draft-07 and 2020-12, chosen by `$schema` (2020-12 where it says nothing).
 *
 * Each schema is compiled once, at its first use. Schemas are somebody else's text: `pattern` runs on a
 * linear-time engine, nothing remote is fetched, and a schema that cannot be used refuses every input.
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
    return validate(input) ? undefined : toProblem(validate.errors?.[0])
  }
}

const DRAFT_07 = /^https?:\/\/json-schema\.org\/draft-0[467]\/schema#?$/
const ajvs = new Map<'2020' | '07', Ajv>()

function compile(schema: AnySchemaObject): ValidateFunction | string {
  try {
    return ajvFor(DRAFT_07.test(String(schema['$schema'])) ? '07' : '2020').compile(schema)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function ajvFor(draft: '2020' | '07'): Ajv {
  let ajv = ajvs.get(draft)
  if (!ajv) {
    const { default: Class } = require(draft === '07' ? 'ajv' : 'ajv/dist/2020.js') as {
      default: new (options: Options) => Ajv
    }
    ajv = new Class({
      strict: false,
      validateFormats: false,
      ownProperties: true,
      addUsedSchema: false,
      logger: false,
      code: { regExp: Object.assign(linearRegExp, { code: 'linearRegExp' }) },
    })
    ajvs.set(draft, ajv)
  }
  return ajv
}

/** ajv keeps what this gives under its text, so the text must be the pattern. */
function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const compiled = RE2JS.compile(pattern)
  return { test: (text) => compiled.matcher(text).find(), toString: () => pattern }
}

function toProblem(error: ErrorObject | undefined): InputProblem {
  const { instancePath = '', keyword, message = 'is not valid', params = {} } = error ?? {}
  if (keyword === 'additionalProperties') {
    return { pointer: `${instancePath}/${String(params['additionalProperty'])}`, message: 'is not a known property' }
  }
  if (keyword === 'enum') return { pointer: instancePath, message: `must be one of ${listed(params['allowedValues'])}` }
  return { pointer: instancePath, message }
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
