import { defineTool, type JsonSchema, type StandardSchema } from '@toolgate/core'
import { checkShape, createValidator, type InputProblem, shapeOf } from '@toolgate/core/internal'

export interface Question {
  /** What a person is asked. */
  readonly question: string
  /** What an answer must be: JSON Schema, or a Standard Schema that gives one. Default: any JSON. */
  readonly schema?: JsonSchema | StandardSchema | undefined
}

const QUESTION = shapeOf<Question>({ question: true, schema: true }, 'field')

const MARK: unique symbol = Symbol.for('toolgate.input-request')

/** A tool's answer that has to come from a person: the run pauses, and what is given at its resume is the tool's result. */
export class InputRequest {
  /** Registered, so that copies of this package know each other's. */
  readonly [MARK] = true
  readonly question: string
  readonly schema: JsonSchema

  constructor(question: string, schema: JsonSchema) {
    this.question = question
    this.schema = schema
    Object.freeze(this)
  }

  /** As it looks where no planner runs the tool. */
  toJSON(): unknown {
    return { waitingFor: 'input', question: this.question, schema: this.schema }
  }
}

/**
 * Gives what a tool answers to have its run pause and a person asked.
 *
 * The input that is given at the resume is checked against the schema, and becomes the result of the tool's call. The
 * tool itself has ended by then: it is not called again.
 *
 * @throws {ConfigError} `schema_invalid` for a schema that cannot be used
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

/** What came over a wire is never one: JSON has no symbols. */
export function isInputRequest(output: unknown): output is InputRequest {
  return typeof output === 'object' && output !== null && MARK in output
}

const ANYTHING: JsonSchema = {}
const validate = createValidator()

/** Says what is wrong with an answer; `undefined` where it is one. */
export function findInputProblem(schema: JsonSchema, input: unknown): InputProblem | undefined {
  return validate(schema, input)
}
