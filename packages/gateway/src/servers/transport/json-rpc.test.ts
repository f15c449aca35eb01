import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JSON_BOUNDS } from '@toolgate/values/json'

import { clip, JsonText, parseMessages } from './json-rpc.ts'
import { UpstreamError } from '../../model/upstream.ts'

const only = (text: string) => parseMessages(text)[0]

describe('parseMessages', () => {
  it('distinguishes results, errors, requests and notifications', () => {
    assert.deepEqual(only('{"jsonrpc":"2.0","id":1,"result":{"a":1}}'), { kind: 'result', id: 1, result: { a: 1 } })
    assert.deepEqual(only('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}'), {
      kind: 'error',
      id: 1,
      error: { code: -1, message: 'no', data: [1] },
    })
    assert.deepEqual(only('{"jsonrpc":"2.0","id":"q","method":"ping"}'), {
      kind: 'request',
      id: 'q',
      method: 'ping',
      params: {},
    })
    assert.deepEqual(only('{"jsonrpc":"2.0","method":"n","params":{"x":1}}'), {
      kind: 'notification',
      method: 'n',
      params: { x: 1 },
    })
  })

  it('returns each message of a batch', () => {
    const text = '[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"result":{}}]'
    assert.deepEqual(
      parseMessages(text).map(({ kind }) => kind),
      ['notification', 'result'],
    )
  })

  it('takes the id of an answer as text, and gives the id of a request back as it came', () => {
    assert.equal(only('{"jsonrpc":"2.0","id":"7","result":{}}')?.kind, 'result')
    for (const text of ['"id":"7","result":{}', '"id":"7","error":{"code":1}', '"id":"7","result":5'])
      assert.equal((only(`{"jsonrpc":"2.0",${text}}`) as { id?: unknown }).id, 7)
    assert.equal((only('{"jsonrpc":"2.0","id":"7","method":"ping"}') as { id?: unknown }).id, '7')
    for (const id of ['"7.0"', '"0x7"', '" 7"', '"-7"', '""', '"1e1"'])
      assert.equal(typeof (only(`{"jsonrpc":"2.0","id":${id},"result":{}}`) as { id?: unknown }).id, 'string')
  })

  it('takes an error without an id, which answers a request that could not be read', () => {
    assert.equal(only('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}')?.kind, 'error')
  })

  it('reads null as absent in the params of a message, and in an answer', () => {
    const params = '{"progressToken":1,"progress":2,"total":null,"message":null}'
    assert.deepEqual(only(`{"jsonrpc":"2.0","id":null,"method":"notifications/progress","params":${params}}`), {
      kind: 'notification',
      method: 'notifications/progress',
      params: { progressToken: 1, progress: 2 },
    })
    const log = only('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":null,"logger":null}}')
    assert.deepEqual(log, { kind: 'notification', method: 'notifications/message', params: { data: null } })
    assert.equal(only('{"jsonrpc":"2.0","id":1,"method":null,"result":{},"error":null}')?.kind, 'result')
    assert.equal(only('{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"?"}}')?.kind, 'error')
  })

  for (const text of ['', 'hello', '5', 'null', '"x"', '{}', '{"id":1,"result":{}}', '{"jsonrpc":"2.0"}', '[1]']) {
    it(`refuses ${text === '' ? 'nothing' : text} and quotes it`, () => {
      assert.throws(
        () => parseMessages(text),
        (error: UpstreamError) => error.code === 'upstream_protocol' && error.message.includes('that is not MCP'),
      )
    })
  }

  it('refuses bytes that are not UTF-8, for their request alone', () => {
    const [message] = parseMessages('{"jsonrpc":"2.0","id":7,"result":{"a":"\ufffd"}}', false)
    assert.ok(message?.kind === 'unusable' && message.id === 7)
    assert.match(message.error.message, /not UTF-8/)
  })

  it('refuses an empty method', () => {
    for (const text of ['{"jsonrpc":"2.0","method":""}', '{"jsonrpc":"2.0","id":1,"method":"","result":{}}'])
      assert.throws(() => parseMessages(text), { code: 'upstream_protocol' })
  })

  it('refuses an answer with a key that occurs twice, for its request alone', () => {
    const message = only(String.raw`{"jsonrpc":"2.0","id":7,"result":{"a":1,"\u0061":2}}`)
    assert.ok(message?.kind === 'unusable' && message.id === 7)
    assert.match(message.error.message, /a key that occurs twice/)
    assert.throws(() => parseMessages('{"jsonrpc":"2.0","id":7,"id":8,"result":{}}'), { code: 'upstream_protocol' })
  })

  it('returns the items of a list apart if one of them has a key twice', () => {
    const message = only('{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"},{"name":"b","name":"c"}]}}')
    assert.ok(message?.kind === 'result')
    assert.deepEqual(message.result['tools'], [new JsonText('{"name":"a"}'), new JsonText('{"name":"b","name":"c"}')])
  })

  it('reads a key with an escape as it is written, after any earlier text', () => {
    JSON.parse(String.raw`{"zz":1,"pat\\":1}`)
    const message = only(String.raw`{"jsonrpc":"2.0","id":7,"result":{"x":{"zz":1,"pat\u0068":1}}}`)
    assert.ok(message?.kind === 'result')
    assert.deepEqual(message.result['x'], { zz: 1, path: 1 })
  })

  it('keeps the id of an answer with an invalid result', () => {
    const message = only('{"jsonrpc":"2.0","id":7,"result":5}')
    assert.equal(message?.kind === 'unusable' && message.id, 7)
  })

  it('refuses JSON nested deeper than 64 levels, for its request alone', () => {
    const nested = (depth: number) => `{"jsonrpc":"2.0","id":7,"result":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`
    assert.equal(only(nested(63))?.kind, 'result')
    for (const depth of [64, 500_000]) {
      const deep = only(nested(depth))
      assert.ok(deep?.kind === 'unusable' && deep.id === 7)
      assert.match(deep.error.message, /nested more than 64 levels deep/)
    }
    assert.throws(() => parseMessages('['.repeat(500_000)), { code: 'upstream_protocol' })
    assert.throws(() => parseMessages('['.repeat(2_000_000)), { code: 'upstream_too_large' })
  })

  it('refuses an answer of too many values or keys without parsing it, for its request alone', (t) => {
    const answerOf = (value: string) => `{"jsonrpc":"2.0","result":{"a":${value}},"id":7}`
    const keys = `{${Array.from({ length: JSON_BOUNDS.answer.keys }, (_, i) => `"k${i}":1`).join()}}`
    const parse = t.mock.method(JSON, 'parse')
    for (const [value, reason] of [
      [`[${'{},'.repeat(JSON_BOUNDS.answer.values / 2)}1]`, /holds more than 200000 values/],
      [keys, /holds more than 50000 keys/],
    ] as const) {
      const message = only(answerOf(value))
      assert.ok(message?.kind === 'unusable' && message.id === 7)
      assert.equal(message.error.code, 'upstream_too_large')
      assert.match(message.error.message, reason)
    }
    assert.deepEqual(
      parse.mock.calls.map(({ arguments: [text] }) => text),
      ['7', '7'],
    )
  })

  it('refuses a request or notification beyond the limits, as no call waits for it', () => {
    const deep = '['.repeat(100) + ']'.repeat(100)
    for (const rest of ['"id":1,"method":"ping"', '"method":"n"'])
      assert.throws(() => parseMessages(`{"jsonrpc":"2.0",${rest},"params":{"a":${deep}}}`), {
        code: 'upstream_protocol',
      })
  })

  it('returns the tools of a list that is beyond the limits one by one, unparsed', () => {
    const deep = `{"name":"deep","inputSchema":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`
    const message = only(`{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"},${deep}],"nextCursor":"2"}}`)
    assert.ok(message?.kind === 'result' && message.id === 7)
    assert.deepEqual(message.result, {
      tools: [new JsonText('{"name":"a"}'), new JsonText(deep)],
      nextCursor: '2',
    })
  })
})

describe('clip', () => {
  it('returns one printable line', () => {
    assert.equal(clip(' a\u001B[31mb\u001B[0m\n\u0000c '), 'ab c')
    assert.equal(clip('x'.repeat(10), 5), 'xxxx…')
  })

  it('shows no part of a secret, also not of one that the cut falls into', () => {
    const secret = `ghp_${'a1'.repeat(20)}`
    assert.equal(clip(`failed with ${secret}`), 'failed with [redacted:github-token]')
    for (let max = 20; max < 60; max++) assert.ok(!clip(`failed with ${secret} and more and more`, max).includes('a1'))
    assert.equal(clip('failed with correct-horse-battery', 30), 'failed with…')
    assert.equal(clip('correct-horse-battery-staple', 20), 'correct-…')
  })
})
