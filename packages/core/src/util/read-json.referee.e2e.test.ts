import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { JsonFault } from './json-fault.ts'
import { measureJson } from './json-measure.ts'
import { parseJson } from './json-parser.ts'
import { readJson, readUtf8 } from './read-json.ts'

/** JSONTestSuite (nst/JSONTestSuite, commit 1ef36fa): `y_` must be accepted, `n_` refused, and `i_` is either. */
const ROOT = path.resolve(import.meta.dirname, '../../../..')
const FOLDER = path.join(
  process.env['TOOLGATE_REFEREES'] ?? path.join(ROOT, '../shared/data/referees'),
  'json-test-suite/test_parsing',
)

/** RFC 8259 §4 leaves it open what a key that occurs twice means: it is refused. */
const REFUSED = ['y_object_duplicated_key.json', 'y_object_duplicated_key_and_value.json']

/** Both ways in which a text may be read. */
const READERS = {
  readJson: (text: string) => readJson(text),
  parseJson(text: string) {
    const { excess } = measureJson(text, { depth: 64 })
    if (excess) throw new JsonFault(excess)
    return parseJson(text)
  },
}

describe('JSONTestSuite', { skip: existsSync(FOLDER) ? false : `there is no ${FOLDER}` }, () => {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER) : []

  for (const [name, read] of Object.entries(READERS)) {
    it(`${name} accepts each text that a reader must accept, and no text that it must refuse`, (t) => {
      const wrong: string[] = []
      const counts = { y: 0, n: 0, 'i, accepted': 0, 'i, refused': 0 }
      for (const file of files) {
        const isAccepted = accepts(read, file)
        const kind = file.slice(0, 1)
        if (kind === 'i') counts[isAccepted ? 'i, accepted' : 'i, refused']++
        else {
          counts[kind as 'y' | 'n']++
          if (isAccepted !== (kind === 'y' && !REFUSED.includes(file))) wrong.push(file)
        }
      }
      t.diagnostic(`${name}: ${JSON.stringify(counts)}`)
      assert.deepEqual(wrong, [])
      assert.ok(counts.y > 90 && counts.n > 180, JSON.stringify(counts))
    })
  }
})

function accepts(read: (text: string) => unknown, file: string): boolean {
  try {
    read(readUtf8(readFileSync(path.join(FOLDER, file))))
    return true
  } catch (error) {
    assert.ok(error instanceof JsonFault, `${file}: ${String(error)}`)
    return false
  }
}
