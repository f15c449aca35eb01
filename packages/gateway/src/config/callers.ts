import { createHash } from 'node:crypto'
import { type Caller, defineCaller, ToolgateError } from '@toolgate/core'
import type { CallerConfig } from './config.ts'
import { checkShape } from './explain.ts'
import { lengthOf, type Reading } from './reading.ts'
import { type CallerInput, callerSchema, callersSchema } from './schema.ts'

/** Reads `callers`. Two with one key, or one user twice for the same use, could not be told apart. */
export function readCallers(reading: Reading): readonly CallerConfig[] {
  const { source } = reading
  const at = source.get(['callers'])
  if (at && !at.items) checkShape(source, ['callers'], callersSchema)
  const byKey = new Map<string, number>()
  const byUser = new Map<string, number>()
  return Array.from({ length: lengthOf(source, ['callers']) }, (_, i) => i).flatMap((i) => {
    const input = checkShape(source, ['callers', i], callerSchema)
    const caller = input && toCaller(reading, i, input)
    if (!caller) return []
    const key = Buffer.from(caller.keyHash).toString('hex')
    checkOnce(reading, byKey, key, i, input.key === undefined ? 'keyHash' : 'key', 'the same key')
    checkOnce(reading, byUser, `${caller.for} ${input.user}`, i, 'user', `the user "${input.user}" for "${caller.for}"`)
    return [caller]
  })
}

function checkOnce(
  { source }: Reading,
  seen: Map<string, number>,
  id: string,
  i: number,
  key: string,
  what: string,
): void {
  const earlier = seen.get(id)
  if (earlier === undefined) seen.set(id, i)
  else source.report(['callers', i, key], `found ${what} as in callers[${earlier}], expected each once`)
}

function toCaller({ source }: Reading, i: number, input: CallerInput): CallerConfig | undefined {
  if ((input.key === undefined) === (input.keyHash === undefined)) {
    source.report(
      ['callers', i],
      `expected ${input.key === undefined ? '"key" or "keyHash"' : 'one of "key" and "keyHash", not both'}`,
    )
    return undefined
  }
  const { key, keyHash, for: use = 'mcp', ...fields } = input
  const caller = checkedCaller(fields, (message) => source.report(['callers', i, 'attributes'], message))
  return (
    caller && {
      keyHash: key === undefined ? Buffer.from(keyHash?.slice('sha256:'.length) ?? '', 'hex') : sha256(key),
      ...(key === undefined ? {} : { demoKey: key }),
      for: use,
      caller,
    }
  )
}

function checkedCaller(fields: Caller, report: (message: string) => void): Caller | undefined {
  try {
    return defineCaller(fields)
  } catch (error) {
    if (!(error instanceof ToolgateError)) throw error
    report(error.message)
    return undefined
  }
}

function sha256(key: string): Uint8Array {
  return createHash('sha256').update(key, 'utf8').digest()
}
