import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { loadConfig } from '../../config/load-config.ts'
import { ConfigFileError } from '../../config/problems.ts'
import { readPolicyTests } from './policy-tests.ts'
import { testsJsonSchema } from './test-schema.ts'

const published: unknown = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../toolgate-tests.schema.json'), 'utf8'),
)
const schema = z.fromJSONSchema(published as Parameters<typeof z.fromJSONSchema>[0])

const folder = mkdtempSync(path.join(tmpdir(), 'test-schema-'))
after(() => rmSync(folder, { recursive: true }))
const config = path.join(folder, 'toolgate.yaml')
writeFileSync(
  config,
  `
servers: { files: { command: node }, web: { url: "http://127.0.0.1:1/mcp" } }
callers: [{ key: "a-key-of-the-viewer", user: viewer, roles: [viewer] }]
groups: { net: { tools: ["web:*"], availableWhen: [{ tcp: "127.0.0.1:1" }] } }
policy: [{ name: base, allow: ["*"] }]
limits: ["web:fetch:5/60"]
`,
)
const file = path.join(folder, 'it.test.yaml')

/** JSON is YAML, too. */
async function parserTakes(value: unknown): Promise<boolean> {
  writeFileSync(file, JSON.stringify(value))
  try {
    await readPolicyTests(file, { config: (name) => loadConfig(name, { env: {} }) })
    return true
  } catch (error) {
    assert.ok(error instanceof ConfigFileError, String(error))
    return false
  }
}

const schemaTakes = (value: unknown): boolean => schema.safeParse(value).success

const TOOLS = ['files:read', 'files:write', 'web:fetch'] as const
const word = fc.stringMatching(/^[a-z]{1,8}$/)
const words = fc.array(word, { maxLength: 3 })
const tool = fc.constantFrom(...TOOLS)
const tools = fc.subarray([...TOOLS])
const anything = fc.dictionary(word, fc.oneof(word, fc.integer(), fc.boolean(), words), { maxKeys: 3 })
const some = <T>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }, ...requiredKeys: (keyof T)[]) =>
  fc.record<T>(shape, { requiredKeys })

const caller = some({
  user: word,
  tenant: word,
  roles: words,
  scopes: words,
  session: word,
  chat: some({ id: word, type: word }, 'id'),
  agent: word,
  client: word,
  actor: word,
  actChain: words,
  keyMadeBy: word,
  makerChain: words,
  run: word,
  attributes: anything,
})
const earlier = some(
  { tool, input: fc.constant({}), output: fc.oneof(word, anything), failed: fc.boolean(), ago: fc.constant('5m') },
  'tool',
)
const history = fc.oneof(
  some({
    said: fc.oneof(word, words),
    labels: fc.subarray(['untrusted']),
    calls: fc.array(
      earlier.map((call) => ({ ...call, ago: '5m' })),
      { maxLength: 2 },
    ),
    lost: fc.boolean(),
  }),
  fc.constant({ run: false }),
)
const state = fc.oneof(
  fc.boolean(),
  some(
    { available: fc.boolean(), unknown: fc.boolean(), reason: word, detail: word, suggestion: word, since: fc.nat() },
    'available',
  ),
)
const perTool = <T>(value: fc.Arbitrary<T>) => fc.dictionary(tool, value, { maxKeys: 2 })
const expected = some(
  {
    visible: tools,
    sees: tools,
    hides: tools,
    notices: words,
    call: perTool(fc.constantFrom('allow', 'ask', 'wait', 'deny')),
    reasons: perTool(fc.subarray(['policy_denied', 'rate_limited'])),
    clause: perTool(fc.constant('base#deny[0]')),
    text: perTool(word),
  },
  'sees',
)
const test = some(
  {
    shows: word,
    caller: fc.oneof(fc.constant('viewer'), caller),
    at: fc.constant('2026-01-31T09:00:00Z'),
    availability: fc.dictionary(fc.constantFrom('net', 'server:web'), state, { maxKeys: 2 }),
    unlocked: fc.array(
      fc.oneof(fc.constant({ request: 'net' }), some({ event: word }, 'event'), some({ found: tools }, 'found')),
      { maxLength: 2 },
    ),
    visibility: tools,
    activeTools: tools,
    history,
    used: fc.constant({ 'web:fetch:5/60': 3 }),
    input: anything,
    expect: expected,
  },
  'shows',
  'expect',
)
const written = some(
  {
    id: fc.constant('files:write' as const),
    namespace: fc.constant('files'),
    name: fc.constant('write'),
    title: word,
    description: word,
    tags: words,
    category: word,
    requiredScopes: words,
    hintsTrusted: fc.boolean(),
    addressees: fc.constant([]),
    inputSchema: fc.constant({ type: 'object' }),
  },
  'id',
)
const valid = fc
  .record({
    callers: fc.dictionary(word, caller, { maxKeys: 2 }),
    write: written,
    tests: fc.array(test, { maxLength: 3 }),
  })
  .map(({ write, ...rest }) => ({ tools: ['files:read', write, 'web:fetch'], ...rest }))

type Json = Record<string, unknown>
const isMap = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
/** Their keys are names, not words of the format. */
const NAMED = new Set(['callers', 'availability', 'used', 'call', 'reasons', 'clause', 'text'])
/** Anything may be in them. */
const OPEN = new Set(['input', 'output', 'attributes', 'inputSchema'])

/** Returns every mapping whose keys are words of the format. */
function mappingsOf(value: unknown, isNamed = false): readonly Json[] {
  if (Array.isArray(value)) return value.flatMap((one) => mappingsOf(one))
  if (!isMap(value)) return []
  const inner = Object.entries(value).flatMap(([key, one]) =>
    !isNamed && OPEN.has(key) ? [] : mappingsOf(one, !isNamed && NAMED.has(key)),
  )
  return isNamed ? inner : [value, ...inner]
}

describe('toolgate-tests.schema.json', () => {
  it('equals the output of scripts/generate-config-schema.ts', () => {
    assert.deepEqual(published, JSON.parse(testsJsonSchema()))
  })

  it('agrees with the parser: both take a valid file, and neither an unknown key anywhere in it', async () => {
    await fc.assert(
      fc.asyncProperty(valid, async (value) => {
        assert.deepEqual([await parserTakes(value), schemaTakes(value)], [true, true])
        for (const mapping of mappingsOf(value)) {
          mapping['zzz'] = 1
          assert.deepEqual([await parserTakes(value), schemaTakes(value)], [false, false], JSON.stringify(value))
          delete mapping['zzz']
        }
      }),
      { numRuns: 40 },
    )
  })

  const wrong: readonly (readonly [what: string, change: (test: Json, file: Json) => void])[] = [
    ['a test without a sentence', (one) => delete one['shows']],
    ['an empty sentence', (one) => (one['shows'] = '')],
    ['a test that expects nothing it could', (one) => delete one['expect']],
    ['tests that are no list', (_one, all) => (all['tests'] = {})],
    ['a caller that is a number', (one) => (one['caller'] = 5)],
    ['a role that is no text', (one) => (one['caller'] = { roles: [5] })],
    ['an empty session', (one) => (one['caller'] = { session: '' })],
    ['a day as the time', (one) => (one['at'] = '2026-01-31')],
    ['a group that is down by a word', (one) => (one['availability'] = { net: 'down' })],
    ['a state without "available"', (one) => (one['availability'] = { net: { reason: 'x' } })],
    ['a limit that is used by half', (one) => (one['used'] = { 'web:fetch:5/60': 0.5 })],
    ['two ways of unlocking at once', (one) => (one['unlocked'] = [{ request: 'net', event: 'x' }])],
    ['a history that is a list', (one) => (one['history'] = [])],
    ['a flag that is a word', (one) => (one['history'] = { lost: 'yes' })],
    ['an age without a unit', (one) => (one['history'] = { calls: [{ tool: 'web:fetch', ago: '5' }] })],
    ['an earlier call of nothing', (one) => (one['history'] = { calls: [{ input: {} }] })],
    ['an unknown outcome', (one) => (one['expect'] = { call: { 'web:fetch': 'denied' } })],
    ['an unknown reason', (one) => (one['expect'] = { reasons: { 'web:fetch': ['policy_denid'] } })],
    ['a notice that is a number', (one) => (one['expect'] = { notices: [1] })],
    ['a text that is a number', (one) => (one['expect'] = { text: { 'web:fetch': 1 } })],
    ['a list of tools that is one tool', (one) => (one['expect'] = { sees: 'web:fetch' })],
    ['a tool without an id', (_one, all) => (all['tools'] = [{ name: 'x' }])],
  ]
  for (const [what, change] of wrong)
    it(`agrees with the parser about ${what}`, async () => {
      const one: Json = { shows: 'it', expect: { sees: ['web:fetch'] } }
      const all: Json = { tools: [...TOOLS], tests: [one] }
      assert.deepEqual([await parserTakes(all), schemaTakes(all)], [true, true])
      change(one, all)
      assert.deepEqual([await parserTakes(all), schemaTakes(all)], [false, false])
    })
})
