import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { changedLines, diffLines } from './line-diff.ts'

describe('diffLines', () => {
  it('keeps what both have, and shows the rest where it was', () => {
    assert.equal(show('a\nb\nc\nd', 'a\nx\nc\nd\ne'), ' a -b +x  c  d +e')
    assert.equal(show('', 'new'), '- +new')
    assert.equal(show('same', 'same'), ' same')
  })

  it('leaves nothing out: both texts can be read from it', () => {
    const text = fc.string({ unit: fc.constantFrom('\n', 'a', 'b') })
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before, after)
        const without = (kind: string): string =>
          lines
            .filter((line) => line.kind !== kind)
            .map((line) => line.text)
            .join('\n')
        assert.deepEqual([without('added'), without('removed')], [before, after])
      }),
    )
  })

  it('does not compare very long texts, and still has all their lines', () => {
    const long = (word: string): string => Array.from({ length: 1500 }, (_, i) => `${word} ${i}`).join('\n')
    const lines = diffLines(`same\n${long('old')}`, `same\n${long('new')}`)
    assert.equal(lines.length, 3001)
    assert.deepEqual(lines[1500]?.kind, 'removed')
    assert.deepEqual(lines[1501]?.kind, 'added')
  })
})

describe('changedLines', () => {
  it('keeps what differs with the lines around it, and counts the others', () => {
    const text = Array.from({ length: 20 }, (_, i) => String(i))
    const shown = changedLines(diffLines(text.join('\n'), text.with(10, 'x').join('\n')))
    assert.deepEqual(
      shown.map((line) => (line.kind === 'skipped' ? `(${line.count})` : `${line.kind[0]}${line.text}`)),
      ['(7)', 's7', 's8', 's9', 'r10', 'ax', 's11', 's12', 's13', '(6)'],
    )
  })

  it('leaves nothing out but equal lines, which it counts', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 40 }).map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(text, text, (before, after) => {
        const all = diffLines(before, after)
        const shown = changedLines(all)
        const lines = shown.flatMap((line) => (line.kind === 'skipped' ? Array(line.count).fill('same') : [line.kind]))
        assert.deepEqual(
          lines,
          all.map(({ kind }) => kind),
        )
      }),
    )
  })
})

function show(before: string, after: string): string {
  const marks = { same: ' ', removed: '-', added: '+' }
  return diffLines(before, after)
    .map(({ kind, text }) => `${marks[kind]}${text}`)
    .join(' ')
}
