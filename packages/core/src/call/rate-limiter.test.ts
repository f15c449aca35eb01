import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryCounters } from '../memory/counters.ts'
import type { CounterStore } from '../ports/ports.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { matchesSelector, parseSelector } from '../tools/selector.ts'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { createToolRateLimiter, parseToolRateLimits, type ToolRateLimiter } from './rate-limiter.ts'
import { runs } from '../../../testing/src/runs.ts'

const ALL = ['tenant', 'tool', 'chat', 'user']

describe('parseToolRateLimits', () => {
  const shapes = (tool: string, max: number) => ({
    tool,
    max,
    windowSeconds: 60,
    match: tool,
    windowMs: 60_000,
    per: ALL,
  })
  const web = shapes('web_search', 10)

  it('reads a text, a JSON text and JSON', () => {
    const all = shapes('*', 100)
    for (const input of [
      'web_search:10/60,*:100/60',
      ' web_search:10/60 , *:100/60 ',
      '["web_search:10/60", {"match":"*","max":100,"windowMs":60000}]',
      ['web_search:10/60', { match: '*', max: 100, windowMs: 60_000 }],
      [
        { tool: 'web_search', max: 10, windowSeconds: 60 },
        { tool: '*', max: 100, windowSeconds: 60 },
      ],
      '[{"tool":"web_search","max":10,"windowSeconds":60},"*:100/60"]',
    ])
      assert.deepEqual(parseToolRateLimits(input), [web, all])
  })

  it('reads nothing in what is unset or blank', () => {
    for (const input of [undefined, '', ' \n', '[]', []]) assert.deepEqual(parseToolRateLimits(input), [])
  })

  it('reads its own answer', () => {
    const limits = parseToolRateLimits('group:web:1/2,a:3/4')
    assert.deepEqual(parseToolRateLimits(limits), limits)
    const uneven = parseToolRateLimits([{ match: 'a', max: 1, windowMs: 1001 }])
    assert.deepEqual(parseToolRateLimits(uneven), uneven)
    assert.deepEqual(uneven[0]?.windowSeconds, 1.001)
  })

  it('returns limits that a gate and a limiter take', () => {
    const limits = parseToolRateLimits([{ tool: 'web_search', max: 1, windowSeconds: 60 }])
    const gate = createGate({ tools: [defineTool({ name: 'web_search' })], limits })
    assert.deepEqual(gate.lint(), [])
    assert.equal(createToolRateLimiter(limits).check('web_search').remaining, 0)
  })

  const refused: readonly (readonly [input: unknown, path: string, problem: RegExp])[] = [
    ['web_search', 'limits[0]', /"web_search" must read selector:uses\/seconds/],
    ['a:1/1,b:0/1', 'limits[1]', /0 is not a count/],
    ['a:1/1,', 'limits[1]', /"" must read/],
    ['group::1/1', 'limits[0]', /has nothing on one side/],
    ['hint:nice:1/1', 'limits[0]', /names no hint/],
    ['[', 'limits', /is no JSON/],
    ['{"a":"1/1"}', 'limits', /must be a list of limits/],
    [[null], 'limits[0]', /must be a text .* or an object/],
    [[{ match: 'a', max: 1, windowMs: 1, windowS: 1 }], 'limits[0].windowS', /unknown key/],
    [7, 'limits', /must be a list of limits/],
    [[{ tool: 'a', match: 'b', max: 1, windowMs: 1 }], 'limits[0].tool', /differs from "match"/],
    [[{ tool: 'a', max: 1, windowMs: 1, windowSeconds: 1 }], 'limits[0].windowSeconds', /differs from "windowMs"/],
    [[{ tool: 'a', max: 1, windowSeconds: '60' }], 'limits[0]', /window must be/],
    [[{ tool: 'a', max: 1, windowSecond: 60 }], 'limits[0].windowSecond', /did you mean "windowSeconds"/],
  ]
  for (const [input, path, problem] of refused) {
    it(`refuses ${JSON.stringify(input)}, naming ${path}`, () => {
      assert.throws(() => parseToolRateLimits(input as string), { name: 'ConfigError', path, problem })
    })
  }
})

const clocked = (rules: string, more: object = {}) => {
  const clock = manualClock()
  return { clock, limiter: createToolRateLimiter(rules, { clock, ...more }) }
}

function countAllowed(times: number, check: () => { allowed: boolean }): number {
  let allowed = 0
  for (let i = 0; i < times; i++) if (check().allowed) allowed++
  return allowed
}

describe('createToolRateLimiter', () => {
  it('allows as many calls as the limit, returns the rest, and when the next is free', () => {
    const { clock, limiter } = clocked('web_search:2/60')
    assert.deepEqual(limiter.check('web_search', 'c1', 'vera'), { allowed: true, remaining: 1, resetMs: 0 })
    clock.advance(10_000)
    assert.deepEqual(limiter.check('web_search', 'c1', 'vera'), { allowed: true, remaining: 0, resetMs: 0 })
    assert.deepEqual(limiter.check('web_search', 'c1', 'vera'), { allowed: false, remaining: 0, resetMs: 50_000 })
    clock.advance(49_999)
    assert.deepEqual(limiter.check('web_search', 'c1', 'vera'), { allowed: false, remaining: 0, resetMs: 1 })
    clock.advance(1)
    assert.equal(limiter.check('web_search', 'c1', 'vera').allowed, true)
  })

  it('counts chats and users apart, and those that are not told as one of their own', () => {
    const { limiter } = clocked('web_search:1/60')
    const whos = [[], ['c1'], ['c2'], ['c1', 'vera'], ['c1', 'bob'], [undefined, 'vera'], ['', 'vera'], ['-', 'vera']]
    for (const allowed of [true, false])
      for (const who of whos)
        assert.equal(limiter.check('web_search', ...(who as string[])).allowed, allowed, who.join())
  })

  it('gives each tool a bucket of its own under *', () => {
    const { limiter } = clocked('*:1/60')
    for (const tool of ['a', 'b', 'ns:a', '__proto__', 'a name that is made up', '']) {
      assert.equal(limiter.check(tool).allowed, true, tool)
      assert.equal(limiter.check(tool).allowed, false, tool)
    }
  })

  it('takes of all matching limits or of none', () => {
    const { clock, limiter } = clocked('a:1/10,*:3/60')
    assert.equal(
      countAllowed(20, () => limiter.check('a')),
      1,
    )
    clock.advance(10_000)
    assert.equal(
      countAllowed(20, () => limiter.check('a')),
      1,
    )
    clock.advance(10_000)
    assert.deepEqual(limiter.check('a'), { allowed: true, remaining: 0, resetMs: 0 })
    clock.advance(10_000)
    assert.deepEqual(limiter.check('a'), { allowed: false, remaining: 0, resetMs: 30_000 })
  })

  it('has no end for tools that no limit names', () => {
    const { limiter } = clocked('a:1/10')
    assert.deepEqual(limiter.check('b'), { allowed: true, remaining: Number.POSITIVE_INFINITY, resetMs: 0 })
  })

  it('matches ids as a gate does, where it knows nothing but them', () => {
    const selectors = ['a', 'ns:a', 'ns:*', '*:a', '*', 'r*', '*:read_*']
    for (const match of selectors)
      for (const id of ['a', 'ns:a', 'ns:b', 'read_x', 'other:read_x', 'rest']) {
        const [namespace, name] = id.includes(':') ? id.split(':') : [undefined, id]
        const tool = defineTool({ name: name as string, namespace })
        const { limiter } = clocked(`${match}:1/1`)
        assert.equal(
          limiter.check(id).remaining === 0,
          matchesSelector(parseSelector(match), tool, 'possible'),
          `${match} ${id}`,
        )
      }
  })

  const tools = [
    defineTool({ namespace: 'web', name: 'search', tags: ['costly'] }),
    defineTool({ namespace: 'web', name: 'fetch', annotations: { readOnlyHint: true } }),
  ]
  const groups = { web: { tools: ['web:*'] }, dear: { tools: ['tag:costly'] } }

  it('reads tags, hints and groups where it is given the tools and groups', () => {
    for (const given of [tools, createToolset(tools)]) {
      const { limiter } = clocked('tag:costly:1/60,hint:read-only:2/60,group:web:3/60,group:dear:9/60', {
        tools: given,
        groups,
      })
      assert.equal(limiter.check('web:search').remaining, 0)
      assert.equal(limiter.check('web:search').allowed, false)
      assert.equal(limiter.check('web:fetch').remaining, 1)
    }
  })

  it('takes a tool as well as its id, and counts them as one', () => {
    const { limiter } = clocked('tag:costly:1/60', { tools })
    assert.equal(limiter.check(tools[0] ?? '').allowed, true)
    assert.equal(limiter.check('web:search').allowed, false)
  })

  it('refuses selectors that it cannot judge by an id, naming the entry', () => {
    const needs = { name: 'ConfigError', path: 'limits[1]', problem: /give the limiter its tools/ }
    for (const match of ['tag:costly', 'category:web', 'hint:destructive', 'group:dear'])
      assert.throws(() => createToolRateLimiter(`a:1/1,${match}:1/1`, { groups }), needs, match)
    assert.throws(() => createToolRateLimiter('group:web:1/1'), {
      name: 'ConfigError',
      path: 'limits[0]',
      problem: /names no group/,
    })
    assert.equal(createToolRateLimiter('group:web:1/1', { groups }).check('web:x').remaining, 0)
  })

  it('does not know an id that none of its tools has', () => {
    const { limiter } = clocked('*:1/60', { tools })
    assert.throws(() => limiter.check('web:serach'), { name: 'UnknownToolError', nearest: ['web:search', 'web:fetch'] })
  })

  it('refuses a chat or a user that is no text: it would be counted as another', () => {
    const { limiter } = clocked('*:1/60')
    assert.throws(() => limiter.check('a', 7 as unknown as string), { code: 'caller_invalid', message: /chatId/ })
    assert.throws(() => limiter.check('a', 'c', null as unknown as string), {
      code: 'caller_invalid',
      message: /userId/,
    })
  })

  it('answers later with counters that do, allows nothing on nonsense, and hides no fault of theirs', async () => {
    const store = memoryCounters({ clock: manualClock() })
    const counters: CounterStore = { ...store, take: async (uses) => store.take(uses) }
    const later = createToolRateLimiter('a:1/60', { counters })
    assert.equal((await later.check('a')).allowed, true)
    assert.deepEqual(await later.check('a'), { allowed: false, remaining: 0, resetMs: 60_000 })
    const nonsense = { ...store, take: () => ({ allowed: 'yes' }) } as unknown as CounterStore
    assert.equal((await createToolRateLimiter('a:1/60', { counters: nonsense }).check('a')).allowed, false)
    const broken: CounterStore = { ...store, take: async () => assert.fail('the disk is full') }
    await assert.rejects(async () => createToolRateLimiter('a:1/60', { counters: broken }).check('a'), /disk/)
  })

  it('shares counters with a limiter of another list', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    const one = createToolRateLimiter('a:2/60', { counters })
    const other = createToolRateLimiter('x:1/1,*:9/9,a:2/60', { counters })
    assert.deepEqual([one.check('a').allowed, other.check('a').allowed, one.check('a').allowed], [true, true, false])
  })
})

/** At most so many in any window, of the tools that the rule names, for each user. */
const RULES = [
  { match: 'a', max: 1, windowMs: 5 },
  { match: 'a', max: 3, windowMs: 40 },
  { match: 'n:*', max: 2, windowMs: 10 },
  { match: '*', max: 4, windowMs: 25 },
  { match: '*', max: 6, windowMs: 25, per: ['user' as const] },
]

interface Call {
  readonly tool: string
  readonly user: string
  readonly atMs: number
}

type Move = { readonly advanceMs: number } | { readonly tool: string; readonly user: string }

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ advanceMs: fc.integer({ min: 0, max: 9 }) }) },
    { weight: 1, arbitrary: fc.record({ advanceMs: fc.constantFrom(0.25, -3, -1e6, 365 * 86_400_000) }) },
    { weight: 9, arbitrary: fc.record({ tool: fc.constantFrom('a', 'b', 'n:a'), user: fc.constantFrom('u', 'v') }) },
  ),
  { maxLength: 120, size: 'max' },
)

/** The calls that a rule counts together with one. */
function countedWith(calls: readonly Call[], rule: (typeof RULES)[number], { tool, user }: Omit<Call, 'atMs'>): Call[] {
  return calls.filter((call) => call.user === user && (rule.per !== undefined || call.tool === tool))
}

const names = ({ match }: (typeof RULES)[number], tool: string): boolean =>
  match === '*' || match === tool || (match === 'n:*' && tool.startsWith('n:'))

describe('a rate limit', () => {
  const run = (check: (limiter: ToolRateLimiter, calls: readonly Call[], call: Call) => boolean) =>
    fc.assert(
      fc.property(moves, (some) => {
        const clock = manualClock(0)
        const limiter = createToolRateLimiter(RULES, { clock })
        const calls: Call[] = []
        let nowMs = Number.NEGATIVE_INFINITY
        for (const move of some) {
          if ('advanceMs' in move) {
            clock.advance(move.advanceMs)
            continue
          }
          // Time that goes back is no time: the limits hold by the latest that was seen.
          nowMs = Math.max(nowMs, clock.monotonicMs())
          const call = { tool: move.tool, user: move.user, atMs: nowMs }
          if (check(limiter, calls, call)) calls.push(call)
        }
      }),
      runs(1000, 20_000),
    )

  it('never lets more than its number through in any window of its length, whatever other limits hold', () => {
    run((limiter, calls, call) => {
      const { allowed } = limiter.check(call.tool, undefined, call.user)
      const after = allowed ? [...calls, call] : calls
      for (const rule of RULES.filter((one) => names(one, call.tool))) {
        const times = countedWith(after, rule, call).map(({ atMs }) => atMs)
        for (const start of times) {
          const inside = times.filter((time) => time >= start && time < start + rule.windowMs).length
          assert.ok(inside <= rule.max, `${inside} calls in ${rule.windowMs} ms by ${rule.match}`)
        }
      }
      return allowed
    })
  })

  it('lets through all that it may, to the edge of the window, and returns the rest and when the next is free', () => {
    run((limiter, calls, call) => {
      const answer = limiter.check(call.tool, undefined, call.user)
      const rooms = RULES.filter((rule) => names(rule, call.tool)).map((rule) => {
        const held = countedWith(calls, rule, call).filter(({ atMs }) => atMs + rule.windowMs > call.atMs)
        return { left: rule.max - held.length - 1, resetMs: (held[0]?.atMs ?? 0) + rule.windowMs - call.atMs }
      })
      const full = rooms.find(({ left }) => left < 0)
      const remaining = full ? 0 : Math.min(...rooms.map(({ left }) => left))
      assert.deepEqual(answer, { allowed: !full, remaining, resetMs: full?.resetMs ?? 0 })
      return answer.allowed
    })
  })
})
