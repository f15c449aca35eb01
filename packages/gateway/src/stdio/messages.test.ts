import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { META } from '@toolgate/mcp'
import { claimedVersion, errorIn, readLine } from './messages.ts'

describe('readLine', () => {
  const read: readonly (readonly [line: string, kind: string, code?: number])[] = [
    ['  ', 'empty'],
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', 'request'],
    ['{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', 'request'],
    ['{"jsonrpc":"2.0","method":"notifications/initialized"}', 'notification'],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 'answer'],
    ['{"id":1,', 'invalid', -32_700],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'invalid', -32_600],
    ['"ping"', 'invalid', -32_600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 'invalid', -32_600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', 'invalid', -32_600],
    ['{"jsonrpc":"2.0","id":1,"method":""}', 'invalid', -32_600],
    ['{"jsonrpc":"2.0","method":""}', 'invalid', -32_600],
    [String.raw`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, 'invalid', -32_600],
    [`{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(65)}${']'.repeat(65)}}`, 'invalid', -32_600],
    ['\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}', 'request'],
  ]
  for (const [line, kind, code] of read)
    it(`reads ${line.trim() || 'an empty line'} as ${kind}`, () => {
      const one = readLine(line)
      assert.equal(one.kind, kind)
      if (one.kind === 'invalid') assert.equal(one.error.code, code)
    })

  it('keeps a request as the client wrote it, and reads params that are an object only', () => {
    const text = ' {"id":7, "method":"x", "params":[1]} '
    const line = readLine(text)
    assert.ok(line.kind === 'request')
    assert.deepEqual(line.request, { id: 7, method: 'x', params: {}, text })
  })
})

describe('claimedVersion', () => {
  const claim = (version: unknown) => claimedVersion({ params: { _meta: { [META.protocolVersion]: version } } })

  it('is what the envelope names', () => assert.equal(claim('2026-07-28'), '2026-07-28'))

  it('is nothing that could end a header', () => {
    for (const odd of ['2026\r\nx: y', '', 'x'.repeat(65), 7, undefined]) assert.equal(claim(odd), undefined)
    assert.equal(claimedVersion({ params: {} }), undefined)
    assert.equal(claimedVersion({ params: { _meta: 'text' } }), undefined)
  })
})

describe('errorIn', () => {
  it('finds a JSON-RPC error, and nothing else', () => {
    assert.deepEqual(errorIn('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":7}}'), {
      code: -1,
      message: 'no',
      data: 7,
    })
    for (const other of [
      '<html>',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"error":{"code":-1,"message":"no"}}',
      '{"jsonrpc":"2.0","error":{"code":"-1","message":"no"}}',
      '{"jsonrpc":"2.0","error":{"code":-1}}',
    ])
      assert.equal(errorIn(other), undefined)
  })
})
