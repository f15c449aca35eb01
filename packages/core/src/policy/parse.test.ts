import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate } from '../gate/gate.ts'
import { parseSelector } from '../tools/selector.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { parsePolicies, askFunction } from './parse.ts'
import { combinePolicies, type Policy, type FunctionPolicy, type Policies } from './policy.ts'

const groups = new Map([['web', [parseSelector('web:*')]]])
const parse = (policy: unknown) => parsePolicies(policy as Policy, groups)

describe('parsePolicies', () => {
  it('takes one policy, several or none', () => {
    assert.equal(parse(undefined).length, 0)
    assert.equal(parse({}).length, 1)
    assert.equal(parse([{}, {}]).length, 2)
  })

  it('names what has no name by its place', () => {
    assert.deepEqual(
      parse([{}, { name: 'baseline' }, {}]).map(({ name }) => name),
      ['policy 1', 'baseline', 'policy 3'],
    )
  })

  it('tells no allowlist from one that allows nothing', () => {
    assert.deepEqual([parse({})[0]?.allow, parse({ allow: [] })[0]?.allow], [undefined, []])
  })

  it('labels a clause by its id, or by what it matches', () => {
    const [policy] = parse({ deny: ['web:*', { match: ['a', 'b'] }, { id: 'no-c', match: 'c' }] })
    assert.deepEqual(
      policy?.deny.map(({ label, index }) => [label, index]),
      [
        ['web:*', 0],
        ['a, b', 1],
        ['no-c', 2],
      ],
    )
  })

  const refused: readonly (readonly [policy: unknown, path: string, problem: RegExp])[] = [
    [
      { allow: [{ match: 'a', mode: 'shadow' }] },
      'policy[0].allow[0].mode',
      /a single allow clause cannot be a shadow/,
    ],
    [{ deny: [{ match: 'a', mode: 'on' }] }, 'policy[0].deny[0].mode', /must be "shadow"; leave it out/],
    [{ deny: ['a'], mode: true }, 'policy[0].mode', /must be "shadow"; leave it out/],
    [{ decide: () => 'allow', mode: 'enforce' }, 'policy[0].mode', /must be "shadow"; leave it out/],
    [null, 'policy[0]', /must be an object/],
    [[[]], 'policy[0]', /must be an object/],
    ['deny all', 'policy[0]', /must be an object/],
    [() => true, 'policy[0]', /must be an object/],
    [{ alow: [] }, 'policy[0].alow', /unknown key; did you mean "allow"\? The keys are name, allow/],
    [JSON.parse('{"__proto__":[]}'), 'policy[0].__proto__', /unknown key/],
    [{ name: '' }, 'policy[0].name', /must be a string that is not empty/],
    [{ deny: {} }, 'policy[0].deny', /must be a list/],
    [{ deny: null }, 'policy[0].deny', /must be a list/],
    [{ requireTags: 'read' }, 'policy[0].requireTags', /must be a list/],
    [{ requireTags: [''] }, 'policy[0].requireTags[0]', /must be a string that is not empty/],
    [{ deny: [null] }, 'policy[0].deny[0]', /must be an object/],
    [{ deny: ['a', {}] }, 'policy[0].deny[1].match', /must match something/],
    [{ deny: [{ match: [] }] }, 'policy[0].deny[0].match', /must match something/],
    [{ deny: [{ match: 7 }] }, 'policy[0].deny[0].match', /must be a list/],
    [{ deny: [{ match: ['a', 7] }] }, 'policy[0].deny[0].match[1]', /must be a string/],
    [{ deny: [{ match: 'a', id: 7 }] }, 'policy[0].deny[0].id', /must be a string/],
    [{ deny: [{ match: 'a', message: '' }] }, 'policy[0].deny[0].message', /must be a string that is not empty/],
    [{ deny: [{ match: 'a', if: 'true' }] }, 'policy[0].deny[0].if', /unknown key; .* The keys are id, match/],
    [[{}, { ask: ['group:wbe'] }], 'policy[1].ask[0].match', /names no group; the groups are web/],
    [{ allow: [{ match: 'a', when: 'caller.rolez' }] }, 'policy[0].allow[0].when', /No such key: rolez/],
    [{ deny: [{ match: 'a', unless: 'input.x' }] }, 'policy[0].deny[0].unless', /Unknown variable: input/],
    [{ deny: [{ match: 'a', input: 'inptu.x' }] }, 'policy[0].deny[0].input', /Unknown variable: inptu/],
    [{ deny: [{ match: 'a', when: null }] }, 'policy[0].deny[0].when', /must be CEL text/],
  ]
  for (const [policy, path, problem] of refused) {
    it(`refuses ${JSON.stringify(policy) ?? 'a function'} at ${path}`, () => {
      assert.throws(() => parse(policy), { name: 'ConfigError', path, problem })
    })
  }
})

describe('combinePolicies', () => {
  it('gives a list in which each policy answers for itself', () => {
    const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }] as const
    assert.deepEqual(combinePolicies(a, [b, c], undefined), [a, b, c])
    assert.deepEqual(combinePolicies(), [])
  })
})

const tools = ['files:read', 'files:write', 'web:search'].map((id) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, execute: () => 'ran' })
})
const gateOf = (policy: Policies): Gate => createGate({ tools, policy })
const byFunction = (decide: unknown, name?: string) => ({ ...(name && { name }), decide }) as FunctionPolicy

describe('a policy that is a function', () => {
  it('decides each tool for each caller, in three words', async () => {
    const words = new Map<string, 'allow' | 'ask' | 'deny'>([
      ['files:read', 'allow'],
      ['files:write', 'ask'],
    ])
    const gate = gateOf(
      byFunction(({ id }: Tool, { user }: { user?: string }) => (user ? words.get(id) : undefined) ?? 'deny'),
    )
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.ids, ['files:read', 'files:write'])
    const outcomes = await Promise.all(tools.map(({ id }) => view.call({ tool: id })))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['done', 'waiting', 'refused'],
    )
    assert.deepEqual((await gate.view({})).ids, [])
  })

  it('is met with policies that are data, in any order', async () => {
    const nothingButFiles = byFunction(({ namespace }: Tool) => (namespace === 'files' ? 'allow' : 'deny'))
    const noWriting = { deny: ['*:write'] }
    for (const policy of [
      [nothingButFiles, noWriting],
      [noWriting, nothingButFiles],
    ]) {
      assert.deepEqual((await gateOf(policy).view({})).ids, ['files:read'])
    }
    assert.deepEqual((await gateOf([byFunction(() => 'allow'), { allow: [] }]).view({})).ids, [])
  })

  it('tells the caller the message of a denial, and nobody that of an approval', async () => {
    const view = await gateOf(byFunction(() => ({ outcome: 'deny', message: 'Not on Sundays.' }))).view({})
    assert.equal((await view.call({ tool: 'files:read' })).text, 'TOOL_CALL_BLOCKED: Not on Sundays.')
    const asking = await gateOf(byFunction(() => ({ outcome: 'ask', message: 'Please.' }))).view({})
    assert.equal((await asking.call({ tool: 'files:read' })).text, 'Waiting for approval of files:read.')
  })

  it('is named in explanations', async () => {
    const { reasons } = (await gateOf(byFunction(() => 'deny', 'office hours')).view({})).explain('files:read')
    assert.deepEqual(
      reasons.map(({ code, policy, text }) => [code, policy, text]),
      [['policy_denied', 'office hours', 'policy "office hours" denies it']],
    )
  })

  it('is asked once for each tool and caller, and not before there is a caller', async () => {
    let asked = 0
    const gate = gateOf(byFunction(() => (asked++, 'allow')))
    assert.equal(asked, 0)
    const view = await gate.view({ user: 'vera' })
    await gate.view({ user: 'vera' })
    await view.call({ tool: 'files:read' })
    assert.equal(asked, tools.length)
    await gate.view({ user: 'bob' })
    assert.equal(asked, 2 * tools.length)
  })

  it('cannot change what it is shown', async () => {
    const meddling = byFunction((_: Tool, caller: { roles: string[] }) => {
      caller.roles.push('admin')
      return 'allow'
    })
    const { outcome, reasons } = (await gateOf(meddling).view({ roles: [] })).explain('files:read')
    assert.deepEqual([outcome, reasons[0]?.code], ['deny', 'policy_error'])
  })

  it('keeps its own `this`', async () => {
    class Quota {
      readonly #allowed = 'web:search'
      decide({ id }: Tool): 'allow' | 'deny' {
        return id === this.#allowed ? 'allow' : 'deny'
      }
    }
    assert.deepEqual((await gateOf(new Quota()).view({})).ids, ['web:search'])
  })

  it('is an error where a class has neither a decision nor clauses, as one whose `decide` is misspelt', () => {
    class Misspelt {
      readonly name = 'quota'
      decied(): 'deny' {
        return 'deny'
      }
    }
    assert.throws(() => gateOf(new Misspelt() as never), /policy\[0\]\.decied: unknown method; did you mean "decide"/)
    class Other {
      judge(): 'deny' {
        return 'deny'
      }
    }
    assert.throws(() => gateOf(new Other() as never), /policy\[0\]: is of a class that has neither a decide\(\)/)
  })

  const nonsense: readonly (readonly [what: string, decide: () => unknown, text: RegExp])[] = [
    ['throws', () => failWith('boom\nat line 1'), /^policy "policy 1": it failed: boom$/],
    ['throws nothing', () => failWith(undefined), /it failed: undefined/],
    ['promises', () => Promise.resolve('allow'), /promise/],
    ['promises and breaks it', () => Promise.reject(new Error('later')), /promise/],
    // oxlint-disable-next-line unicorn/no-thenable -- the very thing that must be refused
    ['answers with something like a promise', () => ({ then: () => 'allow' }), /promise/],
    ['answers nothing', () => undefined, /did not return allow, ask or deny/],
    ['answers null', () => null, /did not return allow, ask or deny/],
    ['answers true', () => true, /did not return allow, ask or deny/],
    ['answers a word of another case', () => 'Allow', /did not return allow, ask or deny/],
    ['answers wait', () => 'wait', /did not return allow, ask or deny/],
    ['answers a String object', () => Object('allow'), /returned neither allow, ask or deny nor/],
    ['answers a list', () => ['allow'], /returned neither allow, ask or deny nor/],
    ['answers an object without an outcome', () => ({}), /returned neither allow, ask or deny nor/],
    ['inherits its outcome', () => Object.create({ outcome: 'allow' }), /returned neither allow, ask or deny nor/],
    ['answers more than it may', () => ({ outcome: 'allow', input: {} }), /returned neither allow, ask or deny nor/],
    ['answers with an empty message', () => ({ outcome: 'deny', message: '' }), /message is not a text/],
    ['answers with a message that is none', () => ({ outcome: 'allow', message: 7 }), /message is not a text/],
    [
      'has an answer that throws',
      () => ({
        get outcome() {
          return failWith('trap')
        },
      }),
      /it failed: trap/,
    ],
  ]
  for (const [what, decide, text] of nonsense) {
    it(`denies with policy_error when it ${what}`, async () => {
      const view = await gateOf(byFunction(decide)).view({})
      assert.deepEqual(view.ids, [])
      const { outcome, reasons } = view.explain('files:read')
      assert.deepEqual([outcome, reasons[0]?.code], ['deny', 'policy_error'])
      assert.match(reasons[0]?.text ?? '', text)
      assert.match((await view.call({ tool: 'files:read' })).text, /^Tool "files:read" is not available/)
    })
  }

  const refused: readonly (readonly [policy: object, path: string, problem: RegExp])[] = [
    [{ decide: 'allow' }, 'policy[0].decide', /must be a function/],
    [{ decide: undefined }, 'policy[0].decide', /must be a function/],
    [{ decide: () => 'allow', deny: ['*'] }, 'policy[0].deny', /has no clauses/],
    [{ decide: () => 'allow', requireTags: ['x'] }, 'policy[0].requireTags', /has no clauses/],
    [{ decide: () => 'allow', name: '' }, 'policy[0].name', /must be a string/],
  ]
  for (const [policy, path, problem] of refused) {
    it(`is refused at ${path} where it ${String(problem).replaceAll('/', '')}`, () => {
      assert.throws(() => parsePolicies(policy, new Map()), { name: 'ConfigError', path, problem })
    })
  }
})

describe('askFunction', () => {
  it('denies what is no tool without asking', () => {
    let asked = 0
    const allow = () => (asked++, 'allow' as const)
    assert.deepEqual(
      [askFunction(allow, undefined, {}).outcome, askFunction(allow, null, {}).outcome],
      ['deny', 'deny'],
    )
    assert.equal(asked, 0)
    assert.equal(askFunction(allow, tools[0], {}).outcome, 'allow')
  })
})

function failWith(thrown: string | undefined): never {
  // oxlint-disable-next-line typescript/only-throw-error -- a policy may throw anything
  throw thrown === undefined ? thrown : new Error(thrown)
}
