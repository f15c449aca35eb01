import { defineTool, type JsonSchema, type StandardSchema } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import type { InputProblem } from '@toolgate/values/json'
import { createValidator } from '@toolgate/core/call'

export interface Question {
  /** The question for a person. */
  readonly question: string
  /** The schema of an answer: JSON Schema, or a Standard Schema that has one. Default: any JSON. */
  readonly schema?: JsonSchema | StandardSchema | undefined
}

const QUESTION = shapeOf<Question>({ question: true, schema: true }, 'field')

const MARK: unique symbol = Symbol.for('toolgate.input-request')

/** A tool's request for an input: the run pauses, and the input given at its resume becomes the tool's result. */
export class InputRequest {
  /** Registered, so that copies of this package recognise each other's. */
  readonly [MARK] = true
  readonly question: string
  readonly schema: JsonSchema

  constructor(question: string, schema: JsonSchema) {
    this.question = question
    this.schema = schema
    Object.freeze(this)
  }

  /** Returns the JSON that a client sees if no planner runs the tool. */
  toJSON(): unknown {
    return { waitingFor: 'input', question: this.question, schema: this.schema }
  }
}

/**
 * Returns the output with which a tool pauses its run to ask a person.
 *
 * At the resume, the person's input is checked against the schema and becomes the result of the call. The tool has
 * ended by then, and is not called again.
 *
 * @throws {ConfigError} `schema_invalid` for an invalid schema
 * @example
 * defineTool({ name: 'ask_user', execute: ({ question }) => askForInput({ question, schema: { type: 'string' } }) })
 */
export function askForInput(asked: Question): InputRequest {
  checkShape('askForInput', asked, QUESTION)
  const { question, schema = ANYTHING } = asked
  // A tool's definition checks and freezes schemas of both kinds.
  const { inputSchema } = defineTool({ name: 'answer', inputSchema: schema })
  return new InputRequest(question, inputSchema)
}

/**
 * Whether a value is a request that this package created. A value from a wire never is, because JSON has no symbols.
 */
export function isInputRequest(output: unknown): output is InputRequest {
  return typeof output === 'object' && output !== null && MARK in output
}

const ANYTHING: JsonSchema = {}
const validate = createValidator()

/** Returns the problem with an answer, or `undefined` for a valid one. */
export function findInputProblem(schema: JsonSchema, input: unknown): InputProblem | undefined {
  return validate(schema, input)
}
