import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findLine, isShown, notesOn, offsetOf, toLines, toProblems, toUnplaced, wordsOfHits } from './policy.ts'
import type { ClauseRow, PolicyBody } from './wire.ts'

function clause(path: string, line?: number, more: Partial<ClauseRow> = {}): ClauseRow {
  return {
    id: path,
    clause: path,
    ref: { policy: 'p', kind: 'deny', index: 0, match: 'c' },
    path,
    ...(line !== undefined && { place: { file: '/etc/toolgate.yaml', line, column: 1 } }),
    hits: 0,
    countedSince: 0,
    matchesTools: 1,
    ...more,
  }
}

const BODY: PolicyBody = {
  revision: 1,
  file: 'toolgate.yaml',
  line: 7,
  text: 'policy:\r\n  - allow: [a, b]\n    deny:\n      - c',
  clauses: [
    clause('policy[0].allow[0]', 8),
    clause('policy[0].allow[1]', 8),
    clause('policy[0].deny[0]', 10),
    clause('apps.chat.policy[0].deny[0]', 30),
  ],
}

describe('the lines of a policy', () => {
  it('have their number in the file, and the clauses that begin in them', () => {
    assert.deepEqual(
      toLines(BODY).map(({ number, text, clauses }) => [number, text, clauses.map(({ path }) => path)]),
      [
        [7, 'policy:', []],
        [8, '  - allow: [a, b]', ['policy[0].allow[0]', 'policy[0].allow[1]']],
        [9, '    deny:', []],
        [10, '      - c', ['policy[0].deny[0]']],
      ],
    )
    assert.deepEqual(
      toUnplaced(BODY, toLines(BODY)).map(({ path }) => path),
      ['apps.chat.policy[0].deny[0]'],
    )
  })

  it('are none without the text, and then no clause is lost', () => {
    const body: PolicyBody = { revision: 1, clauses: BODY.clauses }
    assert.deepEqual(toLines(body), [])
    assert.equal(toUnplaced(body, []).length, 4)
  })

  it('are found by the path of a clause, of a list and of a policy, and by nothing else', () => {
    const at = (path: string) => findLine(toLines(BODY), path)
    assert.deepEqual(
      ['policy[0].deny[0]', 'policy[0].allow', 'policy[0]', 'policy[1]', 'policy[0].den', ''].map(at),
      [3, 1, 1, -1, -1, -1],
    )
  })
})

describe('isShown', () => {
  it('narrows to what never held, what matches nothing, and shadows', () => {
    const held = clause('a', 1, { hits: 2 })
    const gone = clause('b', 1, { hits: 1, matchesTools: 0 })
    const shadow = clause('c', 1, { shadow: true })
    const shown = (name: string) => [held, gone, shadow].filter((one) => isShown(name, one)).map(({ path }) => path)
    assert.deepEqual(['', 'idle', 'unmatched', 'shadow', 'else'].map(shown), [
      ['a', 'b', 'c'],
      ['c'],
      ['b'],
      ['c'],
      ['a', 'b', 'c'],
    ])
  })
})

describe('wordsOfHits', () => {
  it('says what held, and what a shadow would have done', () => {
    const { ref } = clause('a')
    assert.equal(wordsOfHits({ ref, hits: 0 }), 'never held')
    assert.equal(wordsOfHits({ ref, hits: 1 }), 'held for 1 call')
    assert.equal(wordsOfHits({ ref, hits: 0, shadow: true }), 'would have refused no call')
    assert.equal(
      wordsOfHits({ ref, hits: 1, unjudged: 3, shadow: true }),
      'would have refused 1 call, could not judge 3 calls',
    )
    assert.equal(wordsOfHits({ ref: { ...ref, kind: 'ask' }, hits: 2, shadow: true }), 'would have asked about 2 calls')
  })
})

describe('toProblems', () => {
  it('splits what check says into places and texts', () => {
    assert.deepEqual(toProblems('C:\\a b\\t.yaml:12:5: policy[0].deny: found 1: expected\npolicy: is not here\n'), [
      { line: 12, column: 5, text: 'policy[0].deny: found 1: expected' },
      { text: 'policy: is not here' },
    ])
  })
})

describe('offsetOf', () => {
  it('returns the place of a line and a column, at most the end of the line or the text', () => {
    const text = 'ab\ncde\n'
    assert.deepEqual(
      [
        [1, 1],
        [2, 3],
        [2, 99],
        [3, 1],
        [9, 1],
        [1, 0],
      ].map(([line = 0, column = 0]) => offsetOf(text, line, column)),
      [0, 5, 6, 7, 7, 0],
    )
  })
})

describe('notesOn', () => {
  it('names what has no hits, and counts that are not those of all replicas', () => {
    assert.deepEqual(notesOn({ text: 'policy:\n  - allow: ["*"] # requireTags' }), [])
    assert.match(String(notesOn({ text: 'policy:\n  - requireTags: [safe]' })), /requireTags has no hits/)
    assert.match(String(notesOn({ countsAreOwn: true })), /this process/)
  })
})
