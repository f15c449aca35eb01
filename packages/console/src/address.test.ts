import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { type Address, formatAddress, linkTo, PAGES, parseAddress, withChoices } from './address.ts'

describe('parseAddress', () => {
  it('parses the page and its choices', () => {
    const address = parseAddress('#/live?tool=files:read_file&user=vera')
    assert.equal(address.page, 'live')
    assert.deepEqual(
      [...address.choices],
      [
        ['tool', 'files:read_file'],
        ['user', 'vera'],
      ],
    )
  })

  it('returns the first page for anything else', () => {
    for (const hash of ['', '#', '#/', '#/nothing', '#/constructor', '#/tools/x', '#//audit', '#javascript:alert(1)'])
      assert.deepEqual([parseAddress(hash).page, parseAddress(hash).choices.size], ['tools', 0], hash)
  })

  it('accepts former addresses', () => {
    assert.equal(parseAddress('#/audit?user=vera').page, 'live')
    const { page, choices } = parseAddress('#/callers?open=group+web')
    assert.deepEqual([page, Object.fromEntries(choices)], ['people', { view: 'matrix', open: 'group web' }])
    assert.equal(parseAddress('#/keys').choices.get('view'), 'keys')
  })

  it('reads back what formatAddress writes, for any text', () => {
    const address = fc.record({
      page: fc.constantFrom(...PAGES),
      choices: fc
        .array(fc.tuple(fc.string({ minLength: 1 }), fc.string({ unit: 'grapheme', minLength: 1 })))
        .map((pairs) => new Map(pairs)),
    })
    fc.assert(fc.property(address, (one: Address) => assert.deepEqual(parseAddress(formatAddress(one)), { ...one })))
  })
})

describe('formatAddress', () => {
  it('leaves out what is not chosen and keeps tool ids readable', () => {
    assert.equal(formatAddress({ page: 'tools', choices: new Map([['q', '']]) }), '#/tools')
    assert.equal(formatAddress({ page: 'live', choices: new Map([['tool', 'a:b/c d&e']]) }), '#/live?tool=a:b/c+d%26e')
  })
})

describe('withChoices', () => {
  it('changes some choices and removes empty ones', () => {
    const address = parseAddress('#/live?tool=a&user=b')
    assert.equal(formatAddress(withChoices(address, { tool: '', event: 'tool_call' })), '#/live?user=b&event=tool_call')
  })
})

describe('linkTo', () => {
  it('leaves out what is not chosen', () => {
    assert.equal(linkTo('tool', { id: 'files:read_file', as: '' }), '#/tool?id=files:read_file')
    assert.equal(linkTo('people'), '#/people')
  })
})
