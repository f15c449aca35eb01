import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { completeFilter, type FilterGrammar, formatFilter, parseFilter, withoutTyped } from './filter-text.ts'

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'user', about: 'the user' },
    { name: 'tool', about: 'the tool' },
    { name: 'outcome', about: 'how it ended', values: ['done', 'failed', 'refused'] },
  ],
  text: 'text',
}
const parse = (filter: string, grammar = GRAMMAR): Record<string, string> => {
  const { values, problems } = parseFilter(filter, grammar)
  assert.deepEqual(problems, [])
  return Object.fromEntries(values)
}
const problem = (filter: string, grammar = GRAMMAR): string => parseFilter(filter, grammar).problems.join(' ')

describe('parseFilter', () => {
  it('reads keys, quoted values and words', () => {
    assert.deepEqual(parse(''), {})
    assert.deepEqual(parse('user:ann outcome:failed'), { user: 'ann', outcome: 'failed' })
    assert.deepEqual(parse('tool:files:read_file no disk'), { tool: 'files:read_file', text: 'no disk' })
    assert.deepEqual(parse('user:"Ann Lee" "a: \\"b\\" \\\\"'), { user: 'Ann Lee', text: 'a: "b" \\' })
    assert.deepEqual(parse('  USER:ann  '), { user: 'ann' })
    assert.deepEqual(parse('user:"not closed'), { user: 'not closed' })
    assert.deepEqual(parse('"user:ann"'), { text: 'user:ann' })
    assert.deepEqual(parse('-5 --flag'), { text: '-5 --flag' })
  })

  it('names an unknown key, the nearest one, and how to search for the text', () => {
    assert.equal(
      problem('usr:ann'),
      'There is no key “usr”: is it user? To search for it as a text, write "usr:ann" in quotes.',
    )
    assert.match(problem('zzz:ann'), /There is no key “zzz”\. The keys are user, tool, outcome\./)
    assert.match(problem('constructor:x'), /no key “constructor”/)
  })

  it('names values that no record can have, missing values, and keys that are there twice', () => {
    assert.equal(problem('outcome:fail'), '“outcome” is never “fail”: it is one of done, failed, refused.')
    assert.equal(problem('user:'), '“user:” has no value.')
    assert.match(problem('user:a user:b'), /“user” is there twice/)
    assert.match(problem(`user:${'x'.repeat(257)}`), /longer than 256/)
    assert.match(problem('x'.repeat(257)), /longer than 256/)
  })

  it('has no negation, and says so', () => {
    assert.equal(problem('-user:ann'), 'A filter selects, and cannot leave out: write “user:ann” without the “-”.')
  })

  it('refuses words for a list that is not searched by words', () => {
    const { keys } = GRAMMAR
    assert.equal(
      problem('disk', { keys }),
      'This list is not searched by words: write a key before “disk”, such as user:….',
    )
  })
})

describe('formatFilter', () => {
  it('returns a text that parseFilter reads back, for every value', () => {
    const value = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }).filter((text) => text.trim() === text)
    fc.assert(
      fc.property(fc.record({ user: value, tool: value, text: value }, { requiredKeys: [] }), (choices) => {
        const given = new Map(Object.entries(choices))
        const filter = formatFilter((name) => given.get(name) ?? '', GRAMMAR)
        assert.deepEqual(parse(filter), Object.fromEntries([...given].filter(([, text]) => text !== '')))
      }),
    )
  })

  it('is as short as it can be', () => {
    const given = new Map([
      ['user', 'ann'],
      ['tool', 'files:*'],
      ['text', 'no disk'],
    ])
    assert.equal(
      formatFilter((name) => given.get(name) ?? '', GRAMMAR),
      'user:ann tool:files:* no disk',
    )
  })
})

describe('completeFilter', () => {
  const seen = (key: string): readonly string[] => (key === 'user' ? ['ann', 'Ann Lee', 'joanna', 'bob'] : [])
  const texts = (filter: string, caret = filter.length): readonly string[] =>
    completeFilter(filter, caret, GRAMMAR, seen).completions.map(({ text }) => text)

  it('completes keys, and their values: those that begin so first', () => {
    assert.deepEqual(texts(''), ['user:', 'tool:', 'outcome:'])
    assert.deepEqual(texts('o'), ['outcome:', 'user:joanna', 'user:bob', 'outcome:done'])
    assert.deepEqual(texts('user:an'), ['user:ann', 'user:"Ann Lee"', 'user:joanna'])
    assert.deepEqual(texts('outcome:'), ['outcome:done', 'outcome:failed', 'outcome:refused'])
    assert.deepEqual(texts('nope:a'), [])
  })

  it('replaces only the part at the caret', () => {
    const filter = 'user:an disk'
    const { start, end } = completeFilter(filter, 7, GRAMMAR, seen)
    assert.equal(filter.slice(start, end), 'user:an')
  })
})

describe('withoutTyped', () => {
  it('leaves out a key that is being typed, and nothing else', () => {
    assert.equal(withoutTyped('disk user:an', 12), 'disk ')
    assert.equal(withoutTyped('user:an disk', 12), 'user:an disk')
  })
})
