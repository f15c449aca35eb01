import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { TimeoutError, AbortedError } from './async.ts'
import { HaltedError, StreamTooLongError } from '@toolgate/core'
import { ConfigError, ToolgateError, UnknownToolError } from './errors.ts'

const SECRET = 'policy "payments-desk" denies it'
const TEXT = 'Tool "pay" is not available.'

/** Every error of core that a framework may be thrown, with something for the log where it takes that. */
const ERRORS: readonly Error[] = [
  new ToolgateError('tool_refused', TEXT, { detail: SECRET }),
  new ConfigError('policy', TEXT, { detail: SECRET }),
  new UnknownToolError('pay', []),
  new HaltedError(TEXT),
  new TimeoutError(1000),
  new AbortedError(undefined),
  new StreamTooLongError(7),
]

describe('an error of core', () => {
  for (const error of ERRORS) {
    it(`${error.name}: tells what is for the log to nobody who serialises it`, () => {
      const told = [
        JSON.stringify(error),
        JSON.stringify({ error }),
        JSON.stringify(Object.assign({}, error)),
        inspect(error),
        String(error),
      ]
      for (const text of told) assert.ok(!text.includes('payments-desk'), text)
    })

    it(`${error.name}: is its message in JSON`, () => {
      if (error instanceof ToolgateError)
        assert.equal(JSON.stringify(error), JSON.stringify({ message: error.message }))
      else assert.doesNotMatch(JSON.stringify(error), /stack|detail|cause/)
    })
  }

  it('has its detail for the log', () => {
    const [error] = ERRORS as readonly ToolgateError[]
    assert.equal(error?.detail, SECRET)
    assert.equal(error?.code, 'tool_refused')
  })
})
