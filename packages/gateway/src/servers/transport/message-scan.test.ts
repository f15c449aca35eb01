import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { MessageScan } from './message-scan.ts'

/** Scans a text in pieces of so many characters. */
function scan(text: string, size = text.length) {
  const scanned = new MessageScan()
  for (let at = 0; at < text.length; at += size) scanned.push(text.slice(at, at + size))
  return scanned.end()
}

describe('MessageScan', () => {
  it('finds the id of an answer wherever it stands, however the text is split', () => {
    const member = fc.tuple(
      fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ':', ',', 'i', 'd') }),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(
        fc.array(member),
        fc.nat(1_000_000),
        fc.nat(5),
        fc.integer({ min: 1, max: 9 }),
        (members, id, at, size) => {
          const inner = JSON.stringify({ id: 99, method: 'x', members })
          const parts = ['"jsonrpc":"2.0"', `"result":${inner}`]
          parts.splice(at % 3, 0, `"id": ${id}`)
          assert.deepEqual(scan(`{${parts.join(',')}}`, size), { kind: 'answer', id })
        },
      ),
    )
  })

  it('finds an id that is written as text, however it is split', () => {
    for (const size of [1, 2, 3, 100])
      assert.deepEqual(scan('{"jsonrpc":"2.0","result":{"id":"8"},"id": "7" }', size), { kind: 'answer', id: 7 })
  })

  it('is not misled by what a result holds', () => {
    const result = { text: '","id":8,"method":"x', structuredContent: { id: 8, method: 'x' } }
    assert.deepEqual(scan(JSON.stringify({ id: 7, result })), { kind: 'answer', id: 7 })
    assert.deepEqual(scan(JSON.stringify({ result, id: 7 })), { kind: 'answer', id: 7 })
  })

  it('knows a notification and a request of a server', () => {
    assert.deepEqual(scan('{"jsonrpc":"2.0","method":"x","params":{"id":7}}'), { kind: 'other' })
    assert.deepEqual(scan('{"jsonrpc":"2.0","id":7,"params":{},"method":"x"}'), { kind: 'other' })
  })

  for (const [what, text] of [
    ['has no id', '{"result":{}}'],
    ['has two ids', '{"id":7,"result":{},"id":8}'],
    ['has an escaped key', '{"id":7,"result":{},"\\u0069d":8}'],
    ['has an id that is no number', '{"id":"seven","result":{}}'],
    ['has an id that is a fraction', '{"id":7.5,"result":{}}'],
    ['is a batch', '[{"id":7,"result":{}}]'],
    ['is cut off', '{"id":7,"result":{'],
    ['is two messages', '{"id":7,"result":{}}{"id":8,"result":{}}'],
    ['has something before it', 'debug: {"id":7,"result":{}}'],
    ['is not JSON', 'x'.repeat(100)],
  ] as const)
    it(`is not sure of a text that ${what}`, () => assert.equal(scan(text), undefined))
})
