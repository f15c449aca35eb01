import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const FOLDER = path.resolve(import.meta.dirname, '../docs/decisions')
const HEADINGS = ['Context', 'Decision', 'Consequences', 'What else was considered']
const MAX_LINES = 60

const records = globSync('*.md', { cwd: FOLDER }).toSorted()

describe('a decision record', () => {
  for (const record of records) {
    it(`${record} has the four headings and is under a page`, () => {
      const lines = readFileSync(path.join(FOLDER, record), 'utf8').trimEnd().split('\n')
      const [, number] = /^(\d{4})-[a-z0-9-]+\.md$/.exec(record) ?? []
      assert.ok(number, 'is named by its number and its title')
      assert.match(lines[0] ?? '', new RegExp(`^# ${Number(number)}\\. \\S`), 'begins with its number and its title')
      assert.deepEqual(
        lines.filter((line) => line.startsWith('## ')).map((line) => line.slice(3)),
        HEADINGS,
      )
      assert.ok(lines.length <= MAX_LINES, `has ${lines.length} lines`)
    })
  }

  it('has a number of its own, without a gap', () => {
    assert.deepEqual(
      records.map((record) => Number(record.slice(0, 4))),
      records.map((_, i) => i + 1),
    )
  })
})
