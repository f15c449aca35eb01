import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addressesIn } from './addresses-in.ts'
import { createOriginIndex } from './origin-index.ts'

const host = (labels: number) => Array.from({ length: labels }, () => 'a').join('.')

describe('addressesIn', () => {
  it('has a host and those above it, up to the 253 characters of a name', () => {
    assert.equal(addressesIn(`https://${host(127)}/`)?.size, 126)
    for (const long of [host(128), host(8000), `${'a'.repeat(64)}.com`])
      for (const spelled of [`https://${long}/`, `//${long}`, `${long}:80/x`, `see https://b@${long}:1?q`])
        assert.equal(addressesIn(spelled), undefined, spelled.slice(0, 30))
  })

  it('has a host with a dot at its end, of 63 characters a label', () => {
    assert.ok(addressesIn(`https://${'a'.repeat(63)}.com./`)?.has(`${'a'.repeat(63)}.com.`))
  })

  it('has no more addresses than one value has', () => {
    assert.equal(addressesIn(Array.from({ length: 2000 }, (_, i) => `//h${i}.com`).join(' ')), undefined)
  })
})

describe('originOf', () => {
  const index = createOriginIndex()
  index.addOutput('untrusted', 'nothing of this')
  const stepsOf = (value: unknown) => {
    const work = { left: 1e9 }
    index.originOf(value, work)
    return 1e9 - work.left
  }

  it('treats an invalid host as untrusted, even if nothing untrusted was seen', () => {
    assert.equal(createOriginIndex().originOf(`https://${host(8000)}/`), 'untrusted')
  })

  it('counts each search in the seen texts: twice for two hosts', () => {
    const values = (count: number) => Array.from({ length: count }, (_, i) => `https://${i % 10}.${host(100)}/`)
    const [one, two] = [stepsOf(values(20)), stepsOf(values(40))]
    assert.ok(one > 20 * 100 * 2000, String(one))
    assert.equal(two, 2 * one)
  })

  it('is untrusted once more would be done than a call is worth', () => {
    const work = { left: 10_000 }
    assert.equal(index.originOf(`https://${host(100)}/`, work), 'untrusted')
    assert.ok(work.left < 0)
  })

  it('is never the user for an empty value', () => {
    index.addWords('Write to bob@x.com - please')
    for (const nothing of ['', null, undefined, [], {}, [[], {}, ''], ' ', '--', '\u200B', '....'])
      assert.notEqual(index.originOf(nothing), 'user', JSON.stringify(nothing))
  })

  it('is that of a key, too', () => {
    for (const key of ['evil_corp', 'DE89370400440532013000', '4711', 'to'])
      assert.notEqual(index.originOf({ [key]: null }), 'user', key)
    assert.equal(index.originOf({ 'bob@x.com': null }), 'user')
  })
})
