import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  allowIds,
  and,
  byCategory,
  byNamespace,
  byTagsAll,
  byTagsAny,
  byTagsNone,
  denyIds,
  not,
  or,
  type ToolFilter,
} from './filters.ts'
import { defineTool } from './tool.ts'
import { createToolset } from './toolset.ts'

const set = createToolset([
  defineTool({ namespace: 'files', name: 'read', tags: ['read'], category: 'disk' }),
  defineTool({ namespace: 'files', name: 'write', tags: ['write', 'danger'], category: 'disk' }),
  defineTool({ namespace: 'web', name: 'fetch', tags: ['read', 'net'], category: 'constructor' }),
  defineTool({ name: 'notes' }),
])
const [READ, WRITE, NOTES, FETCH] = ['files:read', 'files:write', 'notes', 'web:fetch'] as const
const ALL = [READ, WRITE, NOTES, FETCH]

const kept: readonly (readonly [text: string, filter: ToolFilter, ids: readonly string[]])[] = [
  ["byNamespace('files')", byNamespace('files'), [READ, WRITE]],
  ["byNamespace('files', 'web')", byNamespace('files', 'web'), [READ, WRITE, FETCH]],
  ["byNamespace('')", byNamespace(''), []],
  ['byNamespace()', byNamespace(), []],
  ["byTagsAny('net', 'write')", byTagsAny('net', 'write'), [WRITE, FETCH]],
  ["byTagsAny('rea')", byTagsAny('rea'), []],
  ['byTagsAny()', byTagsAny(), []],
  ["byTagsAll('read', 'net')", byTagsAll('read', 'net'), [FETCH]],
  ["byTagsAll('read', 'read')", byTagsAll('read', 'read'), [READ, FETCH]],
  ['byTagsAll()', byTagsAll(), ALL],
  ["byTagsNone('read')", byTagsNone('read'), [WRITE, NOTES]],
  ["byTagsNone('read', 'danger')", byTagsNone('read', 'danger'), [NOTES]],
  ['byTagsNone()', byTagsNone(), ALL],
  ["byCategory('disk')", byCategory('disk'), [READ, WRITE]],
  ["byCategory('constructor')", byCategory('constructor'), [FETCH]],
  ["byCategory('toString')", byCategory('toString'), []],
  ['byCategory()', byCategory(), []],
  ["allowIds('notes', 'no-such')", allowIds('notes', 'no-such'), [NOTES]],
  ["allowIds('read')", allowIds('read'), []],
  ["allowIds('files:*')", allowIds('files:*'), []],
  ['allowIds()', allowIds(), []],
  ["denyIds('notes')", denyIds('notes'), [READ, WRITE, FETCH]],
  ['denyIds()', denyIds(), ALL],
  ['and()', and(), ALL],
  ["and(byNamespace('files'), byTagsAny('read'))", and(byNamespace('files'), byTagsAny('read')), [READ]],
  ['or()', or(), []],
  ["or(allowIds('notes'), byTagsAny('net'))", or(allowIds('notes'), byTagsAny('net')), [NOTES, FETCH]],
  ["not(byNamespace('files'))", not(byNamespace('files')), [NOTES, FETCH]],
  ['not(and())', not(and()), []],
]

describe('filters', () => {
  for (const [text, filter, ids] of kept) {
    it(`${text} keeps ${ids.length === 0 ? 'nothing' : ids.length === ALL.length ? 'all' : ids.join(' and ')}`, () => {
      assert.deepEqual(set.filter(filter).ids, ids)
    })
  }

  it('refuse values that are not texts, naming the filter and the place', () => {
    const refused: readonly (readonly [() => unknown, RegExp])[] = [
      [() => byNamespace(undefined as never), /byNamespace\[0\]: must be a string, not undefined/],
      [() => byTagsAny(['read'] as never), /byTagsAny\[0\]: must be a string, not a list/],
      [() => byTagsAll('read', null as never), /byTagsAll\[1\]: must be a string, not null/],
      [() => byTagsNone(['danger'] as never), /byTagsNone\[0\]: must be a string, not a list/],
      [() => byCategory(7 as never), /byCategory\[0\]: must be a string, not number/],
      [() => allowIds({} as never), /allowIds\[0\]: must be a string, not object/],
      [() => denyIds(['notes'] as never), /denyIds\[0\]: must be a string, not a list/],
      [() => and(or(), 'files' as never), /and\[1\]: must be a filter, not string/],
      [() => or([and()] as never), /or\[0\]: must be a filter, not a list/],
      [() => not(undefined as never), /not\[0\]: must be a filter, not undefined/],
    ]
    for (const [make, problem] of refused) assert.throws(make, { code: 'filter_invalid', message: problem })
  })

  it('take only true and false for an answer, also from inside another filter', () => {
    const later = (async () => false) as unknown as ToolFilter
    const vague = (() => 'yes') as unknown as ToolFilter
    for (const filter of [later, vague, not(vague), and(vague), or(later)]) {
      assert.throws(() => set.filter(filter), { code: 'filter_invalid', message: /the tool "files:read"/ })
    }
  })
})
