import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import { parseSelector } from '../tools/selector.ts'
import { defineTool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { createUses, LIMIT_PARTS, type LimitInput, parseLimits, type RateLimit, limitsFromEnv } from './limits.ts'
import { createGate } from '../gate/gate.ts'
import { runs } from '../../../testing/src/runs.ts'

const groups = new Map([['web', [parseSelector('web:*')]]])
const parse = (limits: unknown) => parseLimits(limits as LimitInput, groups)

describe('parseLimits', () => {
  it('reads selector:uses/seconds, in one text or a list', () => {
    const limits = ['web:search:10/60', 'notes:2/1', 'group:web:5/3600', '*:100/60']
    const read = parse(limits).map(({ selector, max, windowMs, label }) => [selector.text, max, windowMs, label])
    assert.deepEqual(read, [
      ['web:search', 10, 60_000, '10/60'],
      ['notes', 2, 1000, '2/1'],
      ['group:web', 5, 3_600_000, '5/3600'],
      ['*', 100, 60_000, '100/60'],
    ])
    assert.deepEqual(parse(limits.join(' , ')), parse(limits))
    assert.deepEqual(parse(undefined), [])
  })

  it('takes objects, with what the limit counts apart', () => {
    const [limit] = parse([{ match: 'notes', max: 3, windowMs: 1500, per: ['tenant'] }])
    assert.deepEqual([limit?.max, limit?.windowMs, limit?.per, limit?.label], [3, 1500, ['tenant'], '3/1.5'])
  })

  const refused: readonly (readonly [limit: unknown, problem: RegExp])[] = [
    ['notes', /"notes" must read selector:uses\/seconds/],
    ['notes:10', /must read selector:uses\/seconds/],
    ['notes:10/', /must read/],
    ['notes:-1/60', /must read/],
    ['notes:1.5/60', /must read/],
    ['notes:1e3/60', /must read/],
    [':10/60', /must read/],
    ['', /must read/],
    ['notes:0/60', /0 is not a count of 1 to 1000000/],
    ['notes:1000001/60', /1000001 is not a count/],
    ['notes:1/0', /the window must be 1 ms to 31 days long/],
    ['notes:1/9999999', /the window must be 1 ms to 31 days long/],
    ['group:wbe:1/60', /names no group; the groups are web/],
    ['a b:1/60', /must not hold spaces/],
    [{ match: 'notes', max: Number.NaN, windowMs: 1 }, /NaN is not a count/],
    [{ match: 'notes', max: 1, windowMs: Number.NaN }, /the window must be/],
    [
      { match: 'notes', max: 1, windowMs: 1, per: ['usr'] },
      /cannot count per "usr"; the parts are tenant, tool, chat, user/,
    ],
  ]
  for (const [limit, problem] of refused) {
    it(`refuses ${JSON.stringify(limit)} and names its place`, () => {
      assert.throws(() => parse(['notes:1/1', limit]), { path: 'limits[1]', problem })
    })
  }
})

describe('createUses', () => {
  const tools = ['a', 'b'].map((name) => defineTool({ name, tags: ['slow'] }))
  const snapshot = createToolset(tools)
  const usesBy = (limits: readonly (string | RateLimit)[], tool: string, caller: Caller) =>
    createUses(parse(limits))(snapshot, snapshot.indexOf(tool), caller)
  const keysBy = (limits: readonly (string | RateLimit)[], tool = 'a', caller: Caller = {}) =>
    usesBy(limits, tool, caller).map(({ key }) => key)

  it('returns every limit that names the tool', () => {
    const uses = usesBy(['a:1/60', '*:5/60', 'b:9/60'], 'a', {})
    assert.deepEqual(
      uses.map(({ rule, label, max, windowMs }) => [rule, label, max, windowMs]),
      [
        ['a', '1/60', 1, 60_000],
        ['*', '5/60', 5, 60_000],
      ],
    )
  })

  it('gives each tool a bucket of its own under *, and one for all where it is not counted per tool', () => {
    const keyOf = (tool: string, per?: RateLimit['per']) =>
      usesBy([{ match: '*', max: 1, windowMs: 1, ...(per && { per }) }], tool, {})[0]?.key
    assert.notEqual(keyOf('a'), keyOf('b'))
    assert.equal(keyOf('a', ['user']), keyOf('b', ['user']))
  })

  it('keeps the buckets of limits apart that differ in what they name, in their window or in what they count apart', () => {
    const limits = ['a:1/60', 'a:1/3600', '*:1/60', 'tag:slow:1/60', { match: 'a', max: 1, windowMs: 60_000, per: [] }]
    assert.equal(new Set(keysBy(limits as (string | RateLimit)[])).size, 5)
  })

  it('gives a limit the same key wherever it is in a list, so that replicas with different lists count together', () => {
    const caller = { tenant: 'acme', user: 'vera', chat: { id: 'c1' } }
    const [key] = keysBy(['a:5/60'], 'a', caller)
    assert.deepEqual(
      keysBy(['b:1/1', '*:9/9', 'a:5/60'], 'a', caller).filter((other) => other === key),
      [key],
    )
    assert.equal(key, '1:a/60000|4:acme|1:a|2:c1|4:vera')
    assert.equal(keysBy(['a:5/60'])[0], '1:a/60000|-|1:a|-|-')
  })

  it('gives a limit the same key however many it allows, so that a changed limit goes on counting', () => {
    assert.deepEqual(keysBy(['a:5/60']), keysBy(['a:50/60']))
  })

  it('takes the smallest of limits that differ in nothing else, and takes it once', () => {
    const uses = usesBy(['a:5/60', 'a:3/60', 'a:4/60', 'a:3/60'], 'a', {})
    assert.deepEqual(
      uses.map(({ max, label }) => [max, label]),
      [[3, '3/60']],
    )
  })

  it('reads what is counted apart as a set', () => {
    const limit = { match: 'a', max: 1, windowMs: 1 }
    const some = keysBy([{ ...limit, per: ['user', 'tool', 'user'] }])
    assert.deepEqual(some, keysBy([{ ...limit, per: ['tool', 'user'] }]))
  })

  it('counts an actor and a client only where a limit names them: they do not give a user more', () => {
    const vera = { user: 'vera', tenant: 'acme', client: 'desktop', actor: 'corp/helper' }
    const others = [
      { ...vera, actor: 'corp/other' },
      { ...vera, client: 'phone' },
    ]
    const apart = (per?: RateLimit['per']) =>
      others.map((other) => {
        const limits = [{ match: 'a', max: 1, windowMs: 60_000, ...(per && { per }) }]
        return keysBy(limits, 'a', vera)[0] !== keysBy(limits, 'a', other)[0]
      })
    assert.deepEqual(apart(), [false, false])
    assert.deepEqual(apart(['actor']), [true, false])
    assert.deepEqual(apart(['user', 'client']), [false, true])
    assert.deepEqual(keysBy([{ match: 'a', max: 1, windowMs: 1, per: ['actor', 'client'] }], 'a', vera), [
      '1:a/1/actor+client|11:corp/helper|7:desktop',
    ])
  })

  it('looks at a limit once for each tool, for every caller and however the catalog changes', () => {
    let looked = 0
    const limits = parse(Array.from({ length: 10_000 }, (_, i) => `other-${i}:1/60`)).map((limit) => ({
      ...limit,
      get selector() {
        looked++
        return limit.selector
      },
    }))
    const uses = createUses(limits)
    for (const today of [snapshot, createToolset([...tools, defineTool({ name: 'c' })])])
      for (let i = 0; i < 50; i++) assert.deepEqual(uses(today, today.indexOf('a'), { user: `user-${i}` }), [])
    assert.equal(looked, 10_000)
  })

  it('gives two callers one bucket only where all that is counted apart is the same, whatever their spelling', () => {
    const text = fc.option(fc.constantFrom('', '-', '1', '1:a', 'a|user1:b', '|', 'user-', 'a', 'b'), {
      nil: undefined,
    })
    const caller: fc.Arbitrary<Caller> = fc.record({
      tenant: text,
      user: text,
      chat: text.map((id) => (id === undefined ? undefined : { id })),
      actor: text,
      client: text,
    })
    fc.assert(
      fc.property(caller, caller, fc.subarray([...LIMIT_PARTS]), (one, other, per) => {
        const keyOf = (who: Caller) => usesBy([{ match: 'a', max: 1, windowMs: 1, per }], 'a', who)[0]?.key
        const parts = ({ tenant, user, chat, actor, client }: Caller) => [
          per.includes('tenant') && tenant,
          per.includes('user') && user,
          per.includes('chat') && chat?.id,
          per.includes('actor') && actor,
          per.includes('client') && client,
        ]
        assert.equal(keyOf(one) === keyOf(other), JSON.stringify(parts(one)) === JSON.stringify(parts(other)))
      }),
      runs(2000, 2000),
    )
  })
})

const read = (text: string | undefined) =>
  limitsFromEnv({ TOOL_RATE_LIMITS: text }, { groups: { web: { tools: ['web:*'] } } })

describe('limitsFromEnv', () => {
  const taken: readonly (readonly [text: string | undefined, limits: readonly unknown[]])[] = [
    [undefined, []],
    ['', []],
    [' \n', []],
    ['web_search:10/60', ['web_search:10/60']],
    ['web_search:10/60,tracker_search:20/60', ['web_search:10/60', 'tracker_search:20/60']],
    [' web:search:1/1 , group:web:5/3600 , *:100/60 ', ['web:search:1/1', 'group:web:5/3600', '*:100/60']],
    ['[]', []],
    [' ["web_search:10/60"]', ['web_search:10/60']],
    [
      '[{"match":"tag:slow","max":1,"windowMs":500,"per":["user"]},"*:9/9"]',
      [{ match: 'tag:slow', max: 1, windowMs: 500, per: ['user'] }, '*:9/9'],
    ],
  ]
  for (const [text, limits] of taken) {
    it(`reads ${text === undefined ? 'nothing where it is unset' : JSON.stringify(text)}`, () => {
      assert.deepEqual(read(text), limits)
    })
  }

  const refused: readonly (readonly [text: string, path: string, problem: RegExp])[] = [
    ['web_search', 'TOOL_RATE_LIMITS[0]', /"web_search" must read selector:uses\/seconds/],
    ['a:1/1,b:1', 'TOOL_RATE_LIMITS[1]', /"b:1" must read/],
    ['a:1/1,', 'TOOL_RATE_LIMITS[1]', /"" must read/],
    ['a:1/1,,b:1/1', 'TOOL_RATE_LIMITS[1]', /"" must read/],
    ['a:-1/60', 'TOOL_RATE_LIMITS[0]', /must read/],
    ['a:1.5/60', 'TOOL_RATE_LIMITS[0]', /must read/],
    ['a:0/60', 'TOOL_RATE_LIMITS[0]', /0 is not a count/],
    ['a:1/0', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['group:wbe:1/60', 'TOOL_RATE_LIMITS[0]', /names no group/],
    ['a b:1/60', 'TOOL_RATE_LIMITS[0]', /must not hold spaces/],
    ['[', 'TOOL_RATE_LIMITS', /is no JSON/],
    ['{"web_search":"10/60"}', 'TOOL_RATE_LIMITS', /must be a list of limits/],
    ['[null]', 'TOOL_RATE_LIMITS[0]', /must be a text .* or an object/],
    ['[["a:1/1"]]', 'TOOL_RATE_LIMITS[0]', /must be a text .* or an object/],
    ['["a:1/1", 7]', 'TOOL_RATE_LIMITS[1]', /must be a text .* or an object/],
    ['[{"match":"a","max":1}]', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['[{"max":1,"windowMs":1}]', 'TOOL_RATE_LIMITS[0]', /must be a string/],
    ['[{"match":"a","max":"1","windowMs":1}]', 'TOOL_RATE_LIMITS[0]', /1 is not a count/],
    ['[{"match":"a","max":1,"windowMs":"1000"}]', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['[{"match":"a","max":1,"windowMs":1,"window":1}]', 'TOOL_RATE_LIMITS[0].window', /unknown key/],
    ['[{"match":"a","max":1,"windowMs":1,"per":"user"}]', 'TOOL_RATE_LIMITS[0]', /"per" must be a list/],
    ['[{"match":"a","max":1,"windowMs":1,"per":["role"]}]', 'TOOL_RATE_LIMITS[0]', /cannot count per "role"/],
  ]
  for (const [text, path, problem] of refused) {
    it(`refuses ${JSON.stringify(text)}, naming ${path}`, () => {
      assert.throws(() => read(text), { name: 'ConfigError', path, problem })
    })
  }

  it('refuses a variable that it does not know', () => {
    const env = { TOOL_RATE_LIMITS_DM: 'a:1/1' }
    assert.throws(() => limitsFromEnv(env), { path: 'TOOL_RATE_LIMITS_DM', problem: /unknown variable/ })
  })

  it('returns limits that a gate takes beside its own', async () => {
    const tools = [defineTool({ name: 'search', execute: () => 'found' })]
    const gate = createGate({ tools, limits: ['*:100/60', ...limitsFromEnv({ TOOL_RATE_LIMITS: 'search:1/60' })] })
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'search' })).text, 'found')
    assert.match((await view.call({ tool: 'search' })).text, /rate limited \(1\/60\)/)
  })
})
