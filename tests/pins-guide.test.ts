import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { DEFINITION_LIMITS, FINDINGS } from '@toolgate/core/pins'

const page = readFileSync(path.resolve(import.meta.dirname, '../docs/guide/definition-check.md'), 'utf8')

describe('docs/guide/definition-check.md', () => {
  it('has every finding, and whether quarantine hides a tool for it', () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| .* \| (.+) \|$/gm)].map(([, code, hides]) => [code, hides !== 'no'])
    const expected = Object.entries(FINDINGS).map(([code, { quarantines }]) => [code, quarantines])
    assert.deepEqual(rows, expected)
  })

  it('has every limit', () => {
    const { schemaBytes, ...lengths } = DEFINITION_LIMITS
    assert.ok(page.includes(`over ${schemaBytes / 1024} KiB`))
    for (const [what, most] of Object.entries(lengths)) {
      assert.match(page, new RegExp(`\\b${most.toLocaleString('en')}\\b`), what)
    }
  })
})
