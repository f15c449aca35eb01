import { type Caller, isDefinedCaller } from '@toolgate/core'
import { jsonSchema, type Schema } from 'ai'

/**
 * The `callOptionsSchema` of a shared `ToolLoopAgent` whose option is its caller. It accepts only what `defineCaller`
 * returned, so no request body can choose a caller, and says so in its error.
 */
export const callerSchema: Schema<Caller> = jsonSchema<Caller>(
  { type: 'object' },
  {
    validate: (value) =>
      isDefinedCaller(value) ? { success: true, value } : { success: false, error: new TypeError(NOT_DEFINED) },
  },
)

const NOT_DEFINED =
  'the options must be a caller that defineCaller made: call it where your server has authenticated the user, and pass ' +
  'that very object to generate or stream. Copies by JSON, structuredClone or a spread do not count'
