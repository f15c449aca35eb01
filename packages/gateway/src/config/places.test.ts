import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from './load-config.ts'

const TEXT = `servers: {}
policy:
  - name: baseline
    deny:
      - "files:*"
      - match: web:fetch
        when: "true"
    requireTags: [read]
  - { allow: ["*"] }
apps:
  7days:
    tools: ["files:*"]
    policy:
      - deny: [ "files:a", "files:b" ]
`

describe('the places of clauses', () => {
  const places = loadConfig('toolgate.yaml', { text: TEXT, env: {} }).places
  const rows: readonly (readonly [path: string, line: number, column: number])[] = [
    ['policy[0]', 3, 5],
    ['policy[0].deny', 4, 5],
    ['policy[0].deny[0]', 5, 9],
    ['policy[0].deny[1]', 6, 9],
    ['policy[0].requireTags[0]', 8, 19],
    ['policy[1].allow[0]', 9, 15],
    ['apps.7days.policy[0].deny[1]', 14, 28],
  ]
  for (const [path, line, column] of rows)
    it(`${path} is in line ${line}, column ${column}`, () => {
      assert.deepEqual(places?.get(path), { file: 'toolgate.yaml', line, column })
    })

  it('of a clause behind an alias are those of its text', () => {
    const text = 'servers: {}\npolicy:\n  - deny: [&one "files:*"]\n  - deny: [*one]\n  - allow: ["*"]\n'
    assert.equal(loadConfig('a.yaml', { text, env: {} }).places?.get('policy[1].deny[0]')?.line, 3)
  })
})
