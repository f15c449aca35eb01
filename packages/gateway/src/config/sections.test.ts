import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { z } from 'zod'
import { configJsonSchema } from './sections.ts'

const published: unknown = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../toolgate.schema.json'), 'utf8'),
)

describe('toolgate.schema.json', () => {
  it('equals the output of scripts/generate-config-schema.ts', () => {
    assert.deepEqual(published, JSON.parse(configJsonSchema()))
  })

  it('agrees with the gateway about files whose shape is wrong', () => {
    const schema = z.fromJSONSchema(published as Parameters<typeof z.fromJSONSchema>[0])
    const read = (name: string): unknown => parse(readFileSync(path.join(import.meta.dirname, 'cases', name), 'utf8'))
    for (const name of [
      'unknown-keys',
      'wrong-types',
      'clause-types',
      'no-servers',
      'list',
      'listen',
      'policy-missing',
      'policy-empty',
    ])
      assert.equal(schema.safeParse(read(`${name}.yaml`)).success, false, name)
    const good = { servers: {}, policy: [{ deny: ['a', { match: ['b'], when: 'true' }] }], limits: ['*:1/1'] }
    assert.equal(schema.safeParse(good).success, true)
  })
})
