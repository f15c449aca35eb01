import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'
import { JsonFault, measureJson, readJson, readUtf8 } from '@toolgate/values/json'
import { parseJson } from '../../packages/values/src/json/json-parser.ts'
import { checkScores, describeReferee, Score } from '../support/referees.ts'

/** A key that occurs twice is refused, as RFC 8259 §4 leaves its meaning open. */
const REFUSED = ['y_object_duplicated_key.json', 'y_object_duplicated_key_and_value.json']

/** Both ways in which a text may be read, and the engine's own. */
const READERS: readonly (readonly [who: string, read: (bytes: Uint8Array) => unknown])[] = [
  ['Toolgate', (bytes) => readJson(readUtf8(bytes))],
  [
    'Toolgate, its own parser',
    (bytes) => {
      const text = readUtf8(bytes)
      const { excess } = measureJson(text, { depth: 64 })
      if (excess) throw new JsonFault(excess)
      return parseJson(text)
    },
  ],
  ['JSON.parse of V8', (bytes) => JSON.parse(Buffer.from(bytes).toString())],
]

describeReferee('json-test-suite', (data) => {
  it('is judged by both readers of text from outside: y_ is accepted, n_ refused, i_ either', () => {
    const scores = READERS.map(([who, read]) => {
      const score = new Score(who)
      const open = { accepted: 0, refused: 0 }
      for (const file of data.list('test_parsing')) {
        const given = accepts(read, readFileSync(path.join(data.folder, 'test_parsing', file)), who)
        if (file.startsWith('i_')) open[given ? 'accepted' : 'refused']++
        else score.count(file, file.startsWith('y_'), given)
      }
      console.log(`  ${who}, i_: ${open.accepted} accepted, ${open.refused} refused`)
      return score
    })
    for (const { who, refused } of scores) if (who.startsWith('Toolgate')) assert.deepEqual(refused, REFUSED, who)
    checkScores('json-test-suite', scores)
  })
})

function accepts(read: (bytes: Uint8Array) => unknown, bytes: Uint8Array, who: string): boolean {
  try {
    read(bytes)
    return true
  } catch (error) {
    assert.ok(error instanceof JsonFault || !who.startsWith('Toolgate'), String(error))
    return false
  }
}
