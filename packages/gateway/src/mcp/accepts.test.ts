import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toAnswerForm } from './accepts.ts'

/** The header, and the form of the answer. */
const CASES: readonly (readonly [accept: string | undefined, form: ReturnType<typeof toAnswerForm>])[] = [
  [undefined, 'any'],
  ['', 'any'],
  [' , ', 'any'],
  ['application/json, text/event-stream', 'any'],
  ['text/event-stream,application/json', 'any'],
  ['APPLICATION/JSON, Text/Event-Stream', 'any'],
  ['*/*', 'any'],
  ['*', 'any'],
  // The default of Java's HttpURLConnection, and of axios.
  ['text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', 'any'],
  ['application/json, text/plain, */*', 'any'],
  ['application/json; charset=utf-8, text/event-stream;q=0.1', 'any'],
  ['application/*, text/*', 'any'],
  ['*/*;q=', 'any'],
  ['*/*; q=high, text/html;level=1', 'any'],
  ['application/json;profile="a,b", text/event-stream', 'any'],
  ['application/json', 'json'],
  ['Application/JSON;Q=1', 'json'],
  ['application/*', 'json'],
  ['application/json, text/event-stream;q=0', 'json'],
  ['application/json, text/event-stream ; Q = 0.000', 'json'],
  ['*/*, text/event-stream;q=0', 'json'],
  ['text/*;q=0, */*', 'json'],
  ['text/event-stream', 'stream'],
  ['TEXT/*', 'stream'],
  ['application/json;q=0, */*;q=0.1', 'stream'],
  ['text/*;q=0, text/event-stream', 'stream'],
  ['text/html', undefined],
  ['application/jsonx, text/event-streams', undefined],
  ['*/*;q=0', undefined],
  ['application/json;q=0, text/event-stream;q=0, */*', undefined],
]

describe('toAnswerForm', () => {
  for (const [accept, form] of CASES)
    it(`finds the form for ${JSON.stringify(accept)}: ${form ?? 'none'}`, () => {
      assert.equal(toAnswerForm(accept), form)
    })
})
