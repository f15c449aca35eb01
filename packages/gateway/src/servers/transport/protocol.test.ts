import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { completeResult, discover, encodeRequest, initialize, toHeaderValue } from './protocol.ts'

describe('toHeaderValue', () => {
  it('leaves plain names as they are and wraps all others in base64', () => {
    assert.equal(toHeaderValue('read_file'), 'read_file')
    assert.equal(toHeaderValue('a b'), 'a b')
    assert.equal(toHeaderValue('größe'), '=?base64?Z3LDtsOfZQ==?=')
    assert.equal(toHeaderValue(' a'), '=?base64?IGE=?=')
    assert.equal(toHeaderValue('a\r\nx: y'), '=?base64?YQ0KeDogeQ==?=')
    assert.equal(toHeaderValue('=?base64?YQ==?='), '=?base64?PT9iYXNlNjQ/WVE9PT89?=')
  })

  it('returns visible ASCII that decodes to the name', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }).filter((name) => name.isWellFormed()),
        (name) => {
          const value = toHeaderValue(name)
          assert.match(value, /^[\t\x20-\x7E]+$/)
          const wrapped = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
          assert.equal(wrapped === undefined ? value : Buffer.from(wrapped, 'base64').toString(), name)
        },
      ),
    )
  })
})

describe('encodeRequest', () => {
  it('names the client in every request of 2026-07-28, and not in earlier ones', () => {
    const { params } = JSON.parse(encodeRequest('modern', 1, 'tools/list', { cursor: 'c' }, { progress: true }))
    assert.equal(params.cursor, 'c')
    assert.equal(params['_meta'].progressToken, 1)
    assert.equal(params['_meta']['io.modelcontextprotocol/protocolVersion'], '2026-07-28')
    assert.equal(params['_meta']['io.modelcontextprotocol/clientInfo'].name, 'toolgate')
    assert.deepEqual(params['_meta']['io.modelcontextprotocol/clientCapabilities'], {})
    assert.equal(
      encodeRequest('legacy', 2, 'ping', {}, { progress: false }),
      '{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}',
    )
  })

  it('names arguments that JSON cannot hold', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    assert.throws(() => encodeRequest('legacy', 1, 'tools/call', { arguments: circle }, { progress: false }), {
      code: 'upstream_protocol',
    })
  })
})

describe('completeResult', () => {
  it('takes only complete results of 2026-07-28, and any before', () => {
    assert.deepEqual(completeResult('legacy', {}), {})
    assert.deepEqual(completeResult('modern', { resultType: 'complete', x: 1 }), { resultType: 'complete', x: 1 })
    assert.throws(() => completeResult('modern', {}), /unknown type/)
    assert.throws(() => completeResult('modern', { resultType: 'input_required' }), /asked for more input/)
  })
})

describe('the first answer of a server', () => {
  const nothing = { capabilities: null, serverInfo: null, instructions: null, _meta: null }

  it('declares nothing with capabilities that are null, in both eras', async () => {
    const earlier = await initialize(() => Promise.resolve({ ...nothing, protocolVersion: '2025-11-25' }), {})
    const modern = await discover(() => Promise.resolve({ ...nothing, supportedVersions: ['2026-07-28'] }))
    for (const shown of [earlier, modern])
      assert.deepEqual([shown?.capabilities, shown?.serverInfo, shown?.instructions], [{}, undefined, undefined])
  })

  it('is no MCP without capabilities, or with others than an object', async () => {
    for (const capabilities of [undefined, [], 'tools'])
      await assert.rejects(
        initialize(() => Promise.resolve({ protocolVersion: '2025-11-25', capabilities }), {}),
        {
          code: 'upstream_protocol',
        },
      )
  })
})
