import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findEntries, toEntries, toSearch } from './palette.ts'

const entries = toEntries({
  pages: [
    { text: 'Tools', href: '#/tools' },
    { text: 'Approvals', href: '#/approvals' },
  ],
  tools: [{ id: 'files:read_file', title: 'Read' }, { id: 'files:write_file' }, { id: 'mail:read' }, { id: 'read' }],
  callers: [{ user: 'vera', roles: ['reader'] }] as never,
  approvals: [{ id: 'a1', tool: 'files:write_file', user: 'vera' }],
  halts: [{ id: 'h1', target: { tool: 'mail:*' }, reason: 'leak' }],
  here: '#/live',
})
const find = (query: string, max = 9) =>
  findEntries(entries, query, max).entries.map(({ kind, text }) => `${kind} ${text}`)

describe('the palette', () => {
  it('shows pages first, and then what waits, without a query', () => {
    assert.deepEqual(find('', 4), ['page Tools', 'page Approvals', 'approval files:write_file', 'halt tool mail:*'])
  })

  it('finds what begins with the query before what contains it, in any case', () => {
    assert.deepEqual(find('READ'), ['tool read', 'tool files:read_file', 'tool mail:read', 'caller vera'])
  })

  it('finds what contains all words, in the text or its detail', () => {
    assert.deepEqual(find('vera write'), ['approval files:write_file'])
    assert.deepEqual(find('write_file files'), ['approval files:write_file', 'tool files:write_file'])
    assert.deepEqual(find('nothing of this'), [])
  })

  it('counts what it does not show', () => {
    const { entries: shown, more } = findEntries(entries, 'e', 2)
    assert.equal(shown.length, 2)
    assert.ok(more > 2)
  })

  it('leads to the place', () => {
    const [halt] = findEntries(entries, 'leak', 1).entries
    assert.deepEqual([halt?.href, halt?.focus], ['#/live', 'halt-h1'])
    const [approval] = findEntries(entries, 'vera write', 1).entries
    assert.equal(approval?.href, '#/approvals?id=a1')
    const [tool] = findEntries(entries, 'mail:read', 1).entries
    assert.equal(tool?.href, '#/tool?id=mail:read')
  })

  it('searches the calls for what was typed, and for nothing without it', () => {
    assert.equal(toSearch('  a&b #1 ')?.href, '#/calls?text=a%26b+%231')
    assert.equal(toSearch('  '), undefined)
  })
})
