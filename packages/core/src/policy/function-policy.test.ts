import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate } from '../gate/gate.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { askFunction } from './function-policy.ts'
import { parsePolicies } from './parse.ts'
import type { FunctionPolicy, Policies } from './policy.ts'

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
    ['answers nothing', () => undefined, /none of allow, ask and deny/],
    ['answers null', () => null, /none of allow, ask and deny/],
    ['answers true', () => true, /none of allow, ask and deny/],
    ['answers a word of another case', () => 'Allow', /none of allow, ask and deny/],
    ['answers wait', () => 'wait', /none of allow, ask and deny/],
    ['answers a String object', () => Object('allow'), /neither with allow, ask or deny nor/],
    ['answers a list', () => ['allow'], /neither with allow, ask or deny nor/],
    ['answers an object without an outcome', () => ({}), /neither with allow, ask or deny nor/],
    ['inherits its outcome', () => Object.create({ outcome: 'allow' }), /neither with allow, ask or deny nor/],
    ['answers more than it may', () => ({ outcome: 'allow', input: {} }), /neither with allow, ask or deny nor/],
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
