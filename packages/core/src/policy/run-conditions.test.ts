import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type RunFacts, strictestFacts } from '../history/facts.ts'
import type { Origin } from '../ports/fact-read.ts'
import { defineCaller } from '../ports/caller.ts'
import { parseSelector } from '../tools/selector.ts'
import { defineTool } from '../tools/tool.ts'
import { WorkSpentError } from '@toolgate/values'
import { parseCondition } from './condition.ts'
import { historyUse } from './history-use.ts'
import { parsePolicies } from './parse.ts'
import type { RunRead } from './run-functions.ts'

const tool = defineTool({ namespace: 'mail', name: 'send', addressees: ['to', 'cc', 'meta.reply'] })
const caller = defineCaller({ user: 'vera' })
const GROUPS = new Map([['pay', [parseSelector('pay:*')]]])

const parse = (
  text: string,
  tightens = true,
  scope: 'input, caller and tool' | 'caller and tool' = 'input, caller and tool',
) => parseCondition('policy[0].deny[0].input', text, scope, { tightens, groups: GROUPS })

/** Facts that say no, but for what is given; and everything that they were asked. */
function factsOf(given: Partial<RunFacts> = {}) {
  const asked: unknown[] = []
  const facts: RunFacts = {
    labels: [],
    matched(pattern, values) {
      asked.push([pattern.key, ...values])
      return false
    },
    origin(value) {
      asked.push(value)
      return 'user'
    },
    ...given,
  }
  return { facts, asked }
}

const ask = (
  text: string,
  {
    facts = factsOf().facts,
    input = {},
    tightens = true,
    of = tool,
  }: { facts?: RunFacts; input?: unknown; tightens?: boolean; of?: typeof tool } = {},
) => parse(text, tightens).test({ caller, tool: of, input, facts })

describe('a value of a condition', () => {
  for (const text of [
    "origin(input.list.map(x, input.list)) in ['untrusted']",
    "run.began('mail:send', { 'input.to': input.list.map(x, input.list) })",
    "origin({'a': input.list.map(x, {'b': input.list})}) in ['untrusted'] || true",
  ])
    it(`costs the steps of all its parts, also of those that it has many times: ${text}`, () => {
      let reads = 0
      const item = Object.defineProperty({}, 'name', { enumerable: true, get: () => ++reads })
      assert.throws(() => ask(text, { input: { list: Array.from({ length: 3000 }, () => item) } }), WorkSpentError)
      assert.ok(reads < 1_000_000, `${reads} parts were read`)
    })
})

describe('run.labels', () => {
  it('holds the labels of the run', () => {
    const { facts } = factsOf({ labels: ['untrusted'] })
    assert.equal(ask("'untrusted' in run.labels", { facts }), true)
    assert.equal(ask("'private' in run.labels", { facts }), false)
  })
})

describe('run.called and run.began', () => {
  it('ask for values in the order of the fields, as JSON', () => {
    const { facts, asked } = factsOf()
    const text =
      "!run.called('a:b', { 'output.ok': true, 'input.n': 5, 'input.deep.x': input.order, 'input.l': [input.order.id] })"
    assert.equal(ask(text, { facts, input: { order: { id: 'o1' } } }), true)
    assert.deepEqual(asked, [
      ['["called","a:b","input.deep.x","input.l","input.n","output.ok"]', { id: 'o1' }, ['o1'], 5, true],
    ])
  })

  it('need no fields', () => {
    const { facts, asked } = factsOf({})
    assert.equal(ask("run.began('a:b')", { facts }), false)
    assert.deepEqual(asked, [['["began","a:b"]']])
  })

  const yes = factsOf({ matched: () => true }).facts
  const no = factsOf({ matched: () => false }).facts
  for (const value of ['input.order', 'input.order.id', "timestamp('2026-01-01T00:00:00Z')", 'input.text + 1.0']) {
    it(`answer the strictest where ${value} cannot be read, or is not JSON`, () => {
      const input = { text: 'x' }
      assert.equal(ask(`!run.called('a', { 'input.x': ${value} })`, { facts: yes, input }), true)
      assert.equal(ask(`run.began('a', { 'input.x': ${value} })`, { facts: no, input }), true)
      // Where another part decides, an error would have been dropped.
      assert.equal(ask(`false || !run.called('a', { 'input.x': ${value} })`, { facts: yes, input }), true)
    })
  }

  it('know the variable of a macro', () => {
    const matched: RunFacts['matched'] = (_, [value]) => value === 'o1'
    const { facts } = factsOf({ matched })
    const text = "!input.orders.all(order, run.called('a', { 'input.order': order.id }))"
    assert.equal(ask(text, { facts, input: { orders: [{ id: 'o1' }] } }), false)
    assert.equal(ask(text, { facts, input: { orders: [{ id: 'o1' }, { id: 'o2' }] } }), true)
  })

  it('count the characters of their values', () => {
    const { facts } = factsOf()
    const input = { many: Array.from({ length: 1000 }, () => 'x'), big: 'x'.repeat(10_000) }
    assert.throws(
      () => ask("input.many.exists(x, run.began('a', { 'input.x': input.big }))", { facts, input }),
      WorkSpentError,
    )
  })
})

describe('origin', () => {
  it('asks for the origin of a value', () => {
    const { facts, asked } = factsOf({})
    assert.equal(ask("origin(input.to) != 'user'", { facts, input: { to: 'a@b.test' } }), false)
    assert.deepEqual(asked, ['a@b.test'])
  })

  it('fails for a field that is absent, as any condition does', () => {
    assert.throws(() => ask("origin(input.to) != 'user'"), /No such key: to/)
  })

  it('counts scans of what the run has seen', () => {
    const input = { many: Array.from({ length: 10_000 }, () => 'xxxxxxxx') }
    assert.throws(() => ask("!input.many.all(x, origin(x) == 'user')", { input }), WorkSpentError)
  })

  it('asks for the addressees that are present, and nothing else', () => {
    const cases: readonly (readonly [input: unknown, asked: unknown])[] = [
      [{ to: 'a@b.test', text: 'c@d.test' }, ['a@b.test']],
      [
        { to: ['a@b.test'], cc: '', 'meta.reply': null, meta: { reply: 'r@d.test', other: 1 } },
        ['r@d.test', ['a@b.test']],
      ],
      [{ to: { 'k@b.test': '' } }, [['k@b.test', '']]],
      [{ to: { evil_corp: null } }, [['evil_corp', null]]],
      [{ to: null, cc: [] }, []],
      [{ to: '' }, []],
      [{ meta: [{ reply: 'x' }, { reply: '' }, { reply: 'y' }] }, ['x', 'y']],
      [{ 'meta.reply': 'z', to: null, cc: [''] }, ['z']],
    ]
    for (const [input, expected] of cases) {
      const { facts, asked } = factsOf()
      ask("!(origin(addressees) in ['user', 'trusted'])", { facts, input })
      assert.deepEqual(asked, [expected], JSON.stringify(input))
    }
  })

  it('says nothing against a call without addressees', () => {
    const { facts, asked } = factsOf({ origin: () => 'untrusted' })
    assert.equal(ask("!(origin(addressees) in ['user', 'trusted'])", { facts, input: { text: 'x' } }), false)
    assert.deepEqual(asked, [])
  })

  it('is untrusted for a tool whose addressees nobody named', () => {
    const of = defineTool({ name: 'post' })
    assert.equal(ask("origin(addressees) == 'untrusted'", { of, input: { to: 'a' } }), true)
  })
})

describe('what is read', () => {
  it('is what counted against the call', () => {
    const reads: RunRead[] = []
    const { facts } = factsOf({ origin: (value) => (value === 'u' ? 'unknown' : 'user') })
    parse("!run.called('a') && run.began('b') || origin(input.to) != 'user' || origin(input.cc) != 'user'").test({
      caller,
      tool,
      input: { to: 'u', cc: 'v' },
      facts,
      reads,
    })
    assert.deepEqual(
      reads.map((one) => ('origin' in one ? [one.of, one.origin] : one.pattern.key)),
      ['["called","a"]', ['input.to', 'unknown']],
    )
  })

  it('is of no function of the host', () => {
    let seen: unknown
    const condition = parseCondition('p', (context) => ((seen = context), true), 'input, caller and tool', {
      tightens: true,
      groups: new Map(),
    })
    condition.test({ caller, tool, input: {}, facts: factsOf().facts, reads: [], work: { left: 1 } })
    assert.deepEqual(Object.keys(seen as object), ['caller', 'tool', 'input'])
  })
})

describe('historyUse', () => {
  it('collects labels and patterns, each once', () => {
    const { enforced: use } = historyUse(
      parsePolicies(
        [
          { deny: [{ match: 'pay', unless: "run.called('check', { 'input.order': 1 })" }, 'x'] },
          {
            ask: [
              {
                match: 'pay',
                input: "'private' in run.labels || !run.called('check', { 'input.order': input.order })",
              },
            ],
            allow: [{ match: '*', unless: "'a' in run.labels || run.began('pay')" }],
          },
        ],
        new Map(),
      ),
    )
    assert.deepEqual(
      { ...use, patterns: use.patterns.map(({ key }) => key) },
      {
        readsRun: true,
        readsOrigin: false,
        labels: ['a', 'private'],
        patterns: ['["called","check","input.order"]', '["began","pay"]'],
      },
    )
  })

  it('is nothing where no rule reads the run', () => {
    const { enforced, shadows } = historyUse(
      parsePolicies({ deny: [{ match: 'a', input: 'input.run == 1' }] }, new Map()),
    )
    for (const use of [enforced, shadows])
      assert.deepEqual(use, { readsRun: false, readsOrigin: false, labels: [], patterns: [] })
  })

  it('keeps apart what only shadows read', () => {
    const { enforced, shadows } = historyUse(
      parsePolicies(
        [
          {
            deny: [
              { match: 'pay', input: "run.began('pay')" },
              { match: 'pay', input: "origin(input.to) == 'untrusted'", mode: 'shadow' },
            ],
          },
          { deny: [{ match: 'pay', when: "'private' in run.labels" }], mode: 'shadow' },
        ],
        new Map(),
      ),
    )
    assert.deepEqual([enforced.readsRun, enforced.readsOrigin, enforced.labels], [true, false, []])
    assert.deepEqual([shadows.readsRun, shadows.readsOrigin, shadows.labels], [true, true, ['private']])
    assert.deepEqual([enforced.patterns.length, shadows.patterns.length], [1, 0])
  })
})

describe('polarity', () => {
  /** Of a deny or ask clause, in `when` and `input`. */
  const accepted = [
    "'untrusted' in run.labels",
    "!('untrusted' in run.labels) ? false : true && 'a' in run.labels",
    "input.x == 1 ? 'a' in run.labels : 'b' in run.labels",
    "!run.called('a')",
    "!run.called('group:pay')",
    "run.began('a', { 'input.a.b': 'x' })",
    "run.began('server:pay')",
    "input.l.exists(x, origin(x) == 'untrusted')",
    "!input.l.all(x, origin(x) == 'user')",
    "origin(input.to) != 'user'",
    "'user' != origin(input.to)",
    "origin(input.to) in ['untrusted', 'unknown']",
    "origin(input.to) in ['untrusted', 'unknown', 'trusted']",
    "!(origin(addressees) in ['user', 'trusted'])",
    "origin([input.to, input.cc]) == 'untrusted'",
  ]
  for (const text of accepted) {
    it(`accepts ${text} where it tightens, and its opposite where it loosens`, () => {
      if (!text.includes(' ? false : ')) parse(text, true)
      parse(`!(${text.includes(' ? false : ') ? "'a' in run.labels" : text})`, false)
    })
    if (!text.includes(' ? false : '))
      it(`refuses ${text} where it loosens, and its opposite where it tightens`, () => {
        assert.throws(() => parse(text, false), { code: 'condition_invalid' })
        assert.throws(() => parse(`!(${text})`, true), { code: 'condition_invalid' })
      })
  }

  const refused: readonly (readonly [text: string, offset: number, problem: RegExp])[] = [
    [
      "!('untrusted' in run.labels)",
      2,
      /a label may only tighten a rule, and 'untrusted' in run\.labels loosens this one; write a deny or ask clause/,
    ],
    ["run.called('a')", 0, /may only loosen a rule, and run\.called\('a'\) tightens this one; write !run\.called/],
    ["!run.began('a')", 1, /may only tighten a rule.*write run\.called/],
    [
      "origin(input.to) == 'user'",
      0,
      /user and trusted|untrusted and unknown may only tighten a rule.*write !\(origin\(input\.to\) in \['user'\]\)/,
    ],
    ["origin(input.to) == 'unknown'", 0, /write origin\(input\.to\) in \['untrusted', 'unknown'\]/],
    [
      "!(origin(input.to) == 'trusted')",
      2,
      /user and trusted may only loosen a rule.*write origin\(input\.to\) in \['trusted', 'user'\]/,
    ],
    [
      "origin(input.to) == 'usr'",
      20,
      /'usr' is no origin; the origins are untrusted, unknown, trusted, user; did you mean "user"\?/,
    ],
    ['origin(input.to) in input.list', 20, /written out/],
    ['origin(input.to) in []', 20, /written out/],
    ['origin(input.to) == origin(input.cc)', 20, /is no origin/],
    ["origin(input.to).startsWith('u')", 0, /cannot be judged here/],
    ["('a' in run.labels) == true", 1, /cannot be judged here/],
    ['size(run.labels) > 0', 0, /cannot be judged here/],
    ['run.labels != []', 0, /cannot be judged here/],
    ["run.labels.exists(x, x == 'a')", 0, /cannot be judged here/],
    ["input.l.exists_one(x, run.began('a', { 'input.x': x }))", 0, /cannot be judged here/],
    ["input.l.filter(x, run.began('a', { 'input.x': x })).size() > 0", 0, /cannot be judged here/],
    ["cel.bind(x, origin(input.to), x != 'user')", 0, /cannot be judged here/],
    ["'a' in run.labels ? true : false", 0, /the condition of \? : cannot read the run/],
    ['has(run.labels)', 0, /cannot be judged here/],
    ['input.l.all(run, run == 1)', 12, /would hide the run/],
    ['size(addressees) > 3', 0, /cannot be judged here/],
    ['input.label in run.labels', 0, /a label must be written out/],
    ["'trusted' in run.labels", 0, /'trusted' is no label/],
    ['!run.called(input.tool)', 12, /written out/],
    ["!run.called('group:payy')", 12, /names no group/],
    ["!run.called('server:pay')", 12, /names everything of a server/],
    ["!run.called('a', input.fields)", 17, /must be written out/],
    ["!run.called('a', { 'order': 1 })", 19, /begin with "input\." or "output\."/],
    ["!run.called('a', { input.order: 1 })", 19, /must be written out/],
    ["!run.called('a', { 'input.a': 1, 'input.a': 2 })", 33, /stands there twice/],
    ["!run.called('a', { 'input.a': origin(input.b) })", 30, /cannot read the run/],
    ["run.began('a', { 'output.ok': true })", 17, /has no output/],
    ["run.beganx('a')", 0, /run has no beganx\(\); it has called\(\) and began\(\); did you mean "began"\?/],
    ['run.lables == []', 0, /cannot be judged here/],
    ["origin(input.a, input.b) == 'user'", 0, /origin\(value\) has one argument/],
    ["origin(origin(input.a)) != 'user'", 7, /cannot read the run/],
  ]
  for (const [text, offset, problem] of refused) {
    it(`refuses ${text} and says where and what to write`, () => {
      assert.throws(
        () => parse(text),
        (error: { code: string; path: string; problem: string; offset?: number }) => {
          assert.deepEqual(
            [error.code, error.path, error.offset],
            ['condition_invalid', 'policy[0].deny[0].input', offset],
          )
          assert.match(error.problem, problem)
          return true
        },
      )
    })
  }

  const places: readonly (readonly [
    kind: 'deny' | 'ask' | 'allow',
    field: 'when' | 'unless' | 'input',
    tightens: boolean,
  ])[] = [
    ['deny', 'when', true],
    ['deny', 'input', true],
    ['deny', 'unless', false],
    ['ask', 'when', true],
    ['ask', 'input', true],
    ['ask', 'unless', false],
    ['allow', 'when', false],
    ['allow', 'input', false],
    ['allow', 'unless', true],
  ]
  for (const [kind, field, tightens] of places) {
    it(`takes ${field} of ${kind} as a place that ${tightens ? 'tightens' : 'loosens'}`, () => {
      const load = (text: string) => parsePolicies({ [kind]: [{ match: '*', [field]: text }] }, new Map())
      load(tightens ? "'a' in run.labels" : "!('a' in run.labels)")
      assert.throws(() => load(tightens ? "!('a' in run.labels)" : "'a' in run.labels"), {
        code: 'condition_invalid',
        path: `policy[0].${kind}[0].${field}`,
      })
    })
  }

  it('lets when and unless ask for addressees, and for no other input', () => {
    parse("origin(addressees) != 'user'", true, 'caller and tool')
    assert.throws(() => parse("origin(input.to) != 'user'", true, 'caller and tool'), /Unknown variable: input/)
  })

  it('has a strictest answer for each condition that it accepts', () => {
    const strictest = strictestFacts(['untrusted', 'a', 'b'])
    const origins: readonly Origin[] = ['untrusted', 'unknown', 'trusted', 'user']
    for (const text of accepted.filter((one) => !one.includes(' ? false : '))) {
      const input = { x: 1, l: ['q'], to: 'a@b.test', cc: 'c@d.test' }
      const answer = ask(text, { facts: strictest, input })
      for (const origin of origins)
        for (const matched of [true, false])
          for (const labels of [[], ['untrusted'], ['a', 'b']])
            if (ask(text, { facts: { labels, matched: () => matched, origin: () => origin }, input }))
              assert.equal(answer, true, text)
    }
  })
})
