import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineCaller } from '../ports/caller.ts'
import { defineTool } from '../tools/tool.ts'
import { type ConditionScope, parseCondition } from './condition.ts'
import type { Condition } from './policy.ts'
import { WorkSpentError } from '@toolgate/values'

const tool = defineTool({ namespace: 'files', name: 'read', tags: ['safe'] })
const caller = defineCaller({ user: 'vera', attributes: { seats: 5 } })
const parse = (condition: Condition, scope: ConditionScope = 'input, caller and tool') =>
  parseCondition('policy[0].deny[0].when', condition, scope, { tightens: true, groups: new Map() })
const test = (condition: Condition, input?: unknown) => parse(condition).test({ caller, tool, input })

describe('parseCondition', () => {
  const answers: readonly (readonly [condition: string, input: unknown, answer: boolean])[] = [
    ["caller.user == 'vera'", {}, true],
    ["'admin' in caller.roles", {}, false],
    ['caller.scopes.size() == 0', {}, true],
    ["tool.id == 'files:read' && tool.namespace == 'files' && tool.name == 'read'", {}, true],
    ["'safe' in tool.tags && tool.requiredScopes.size() == 0", {}, true],
    ['caller.attributes.seats == 5', {}, true],
    ['caller.attributes.seats > 4', {}, true],
    ['has(caller.tenant)', {}, false],
    ["has(caller.chat) && caller.chat.type == 'dm'", {}, false],
    ['input.amount > 100', { amount: 101 }, true],
    ['input.amount == 100', { amount: 100 }, true],
    ['input.kind in ["a", "b"]', { kind: 'b' }, true],
    ['input.a.b[1] == "x"', { a: { b: ['w', 'x'] } }, true],
    ['input["a"] == null', { a: null }, true],
    ['input.list.all(x, x < 3)', { list: [1, 2] }, true],
    ['input.list.filter(x, x > 1).map(x, x).size() == 1', { list: [1, 2] }, true],
    ['input.on', { on: true }, true],
    ["within(input.path, '/w')", { path: '/x' }, false],
    ["host(input.url) == 'a.test'", { url: 'https://a.test/' }, true],
    ["like(input.text, 'a*')", { text: 'abc' }, true],
    ["cel.bind(who, caller.user, who == 'vera')", {}, true],
  ]
  for (const [condition, input, answer] of answers) {
    it(`${condition} is ${answer} for ${JSON.stringify(input)}`, () => assert.equal(test(condition, input), answer))
  }

  const fails: readonly (readonly [condition: string, input: unknown])[] = [
    ["caller.tenant == 'acme'", {}],
    ["caller.chat.type == 'dm'", {}],
    ["caller.attributes.plan == 'pro'", {}],
    ["caller.attributes.constructor == 'x'", {}],
    ['input.path == "a"', {}],
    ['input.toString == "a"', {}],
    ['input.__proto__ == "a"', {}],
    ['input.on', { on: 1 }],
    ['input.on', { on: null }],
    ['caller.attributes.seats', {}],
    ["within(input.path, '/w')", { path: 7 }],
    ['within(input.path, input.root)', { path: '/etc', root: '' }],
    ["host(input.url) == ''", { url: 'a.test' }],
  ]
  for (const [condition, input] of fails) {
    it(`${condition} cannot be decided for ${JSON.stringify(input)}`, () => assert.throws(() => test(condition, input)))
  }

  it('lets an error pass where another part decides', () => {
    assert.equal(test("caller.tenant == 'x' || caller.user == 'vera'"), true)
    assert.equal(test("caller.tenant == 'x' && caller.user == 'omar'"), false)
  })

  it('does not see what an upstream writes of itself', () => {
    for (const field of ['description', 'title', 'annotations', 'inputSchema']) {
      assert.throws(() => parse(`tool.${field} == ''`), { problem: new RegExp(`No such key: ${field}`) })
    }
  })

  const refused: readonly (readonly [what: string, condition: unknown, offset: number | undefined, problem: RegExp])[] =
    [
      ['a misspelt field', "'admin' in caller.rolez", 18, /No such key: rolez at character 19/],
      ['a variable that there is not', 'request.path == "a"', 0, /Unknown variable: request/],
      ['a function that there is not', "startsWith(caller.user, 'a')", undefined, /no matching overload/],
      ['a comparison of types', 'caller.user == 5', 0, /no such overload: string == int/],
      ['what is no condition', 'caller.user', undefined, /must be true or false, this one is of type string/],
      ['what cannot be read', 'caller.user ===', 14, /Unexpected character: =/],
      ['half a condition', 'caller.user == (', undefined, /Unexpected/],
      ['nothing', '', undefined, /must be CEL text that is not empty/],
      ['no text', 7, undefined, /must be CEL text/],
      ['matches()', "caller.user.matches('(a+)+$')", 0, /matches\(\) is not offered.*use like/],
      ['matches() as a function', "matches(caller.user, 'a')", 0, /matches\(\) is not offered/],
      [
        'matches() deep inside',
        "true || !(input.list.exists(x, x.matches('a')))",
        undefined,
        /matches\(\) is not offered/,
      ],
      ['a macro inside a macro', 'input.a.all(x, input.b.all(y, x == y))', 15, /all\(\) inside another macro/],
      [
        'a macro inside a call inside a macro',
        'input.a.all(x, size(input.b.filter(y, y == x)) > 0)',
        20,
        /filter\(\) inside another/,
      ],
      ['a macro in a list inside a macro', 'input.a.all(x, [input.b.map(y, y)] == [])', 16, /map\(\) inside another/],
      ['a text that is too long', 'true'.padEnd(4097, ' '), undefined, /at most 4096 characters, this one has 4097/],
      ['twenty thousand marks', `${'!'.repeat(20_000)}true`, undefined, /at most 4096 characters/],
      ['four thousand marks', `${'!'.repeat(4000)}true`, 3500, /maxAstNodes/],
      ['two thousand parentheses', `${'('.repeat(2000)}true${')'.repeat(2000)}`, 40, /maxDepth/],
      ['two thousand brackets', '['.repeat(2000), 40, /maxDepth/],
    ]
  for (const [what, condition, offset, problem] of refused) {
    it(`refuses ${what}, with its path${offset === undefined ? '' : ' and its offset'}`, () => {
      assert.throws(
        () => parse(condition as string),
        (error: { code: string; path: string; problem: string; offset?: number }) => {
          assert.deepEqual([error.code, error.path], ['condition_invalid', 'policy[0].deny[0].when'])
          assert.match(error.problem, problem)
          if (offset !== undefined) assert.equal(error.offset, offset)
          return true
        },
      )
    })
  }

  it('knows the input only where there is one', () => {
    assert.throws(() => parse('input.path == "a"', 'caller and tool'), { problem: /Unknown variable: input/ })
  })

  it('knows whether the answer can differ from tool to tool', () => {
    assert.equal(parse("caller.user == 'a'").perTool, false)
    assert.equal(parse("caller.roles.exists(r, r == 'a' && 'b' in tool.tags)").perTool, true)
    assert.equal(parse('[tool.name] == ["a"]').perTool, true)
    assert.equal(parse("{'a': tool.name} == {'a': 'b'}").perTool, true)
    assert.equal(parse("true ? false : tool.name == 'a'").perTool, true)
    assert.equal(parse(() => true).perTool, true)
  })
})

describe('a condition that is a function', () => {
  it('is asked with caller, tool and input', () => {
    assert.equal(
      test(({ caller: who, tool: what, input }) => who.user === 'vera' && what.name === 'read' && input === 7, 7),
      true,
    )
  })

  it('cannot be decided where it throws, or answers neither true nor false', () => {
    const answers: unknown[] = [1, 'true', undefined, null, {}]
    for (const answer of answers) assert.throws(() => test(() => answer as boolean), /did not return true or false/)
    assert.throws(() => test(() => assert.fail('its own')), /its own/)
  })

  it('is not waited for: a promise is no answer, and its rejection ends nothing', async () => {
    const condition = (() => Promise.reject(new Error('late'))) as unknown as Condition
    assert.throws(() => test(condition), /did not return true or false/)
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('goes by its name in explanations', () => {
    function isAdmin(): boolean {
      return true
    }
    assert.equal(parse(isAdmin).text, 'function isAdmin')
    assert.equal(parse(() => true).text, 'function')
  })
})

describe('a condition about a large input', () => {
  const list = Array.from({ length: 100_000 }, (_, i) => i)
  const text = 'ab'.repeat(1_000_000)
  const some = (count: number, make: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => make(i)).join(' || ')

  const decided: readonly (readonly [condition: string, input: unknown])[] = [
    ["input.list.exists(x, x == 'a')", { list }],
    ["'a' in input.list", { list }],
    ["like(input.text, '*c*')", { text }],
    ["within(input.path, '/w') && input.list.size() == 0", { path: text, list }],
    ["input.paths.all(p, within(p, '/w'))", { paths: ['a', 'b', '/c'], content: text }],
  ]
  for (const [condition, input] of decided) {
    it(`is decided: ${condition}`, () => assert.equal(test(condition, input), false))
  }

  const refused: readonly (readonly [condition: string, input: unknown])[] = [
    [some(10, (i) => `input.list.exists(x, x == 'a${i}')`), { list }],
    [some(40, (i) => `'a${i}' in input.list`), { list }],
    [some(10, (i) => `like(input.text, '*c${i}*')`), { text }],
    ["input.list.all(x, like(x, '*a*'))", { list: Array.from({ length: 100 }, () => text) }],
    [
      "input.list.exists(x, x == 'a')",
      {
        list: Array.from({ length: 1000 }, () => list)
          .flat()
          .slice(0, 500_000),
      },
    ],
  ]
  for (const [condition, input] of refused) {
    it(`cannot be decided, as it takes too many steps: ${condition.slice(0, 50)}`, () => {
      assert.throws(() => test(condition, input), WorkSpentError)
    })
  }

  it('shares its steps with the others of one decision, each of which fails once they are spent', () => {
    const condition = parse("like(input.text, '*c*')")
    const work = { left: 5_000_000 }
    const ask = () => condition.test({ caller, tool, input: { text }, work })
    assert.deepEqual([ask(), ask()], [false, false])
    assert.throws(ask, WorkSpentError)
    assert.throws(
      () => parse("like(input.text, 'a')").test({ caller, tool, input: { text: 'a' }, work }),
      WorkSpentError,
    )
  })

  it('that is a function is not told of steps', () => {
    const keys = parse((context) => Object.keys(context).length === 3)
    assert.equal(keys.test({ caller, tool, input: {}, work: { left: 1 } }), true)
  })
})
