import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'

const execute = () => 'ran'

const open = (stepUp: readonly string[] = []) =>
  createGate({
    tools: {
      open: { execute },
      write: {
        requiredScopes: ['write'],
        inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
        execute,
      },
      both: { requiredScopes: ['write', 'admin'], execute },
      root: { requiredScopes: ['write', 'root'], execute },
      denied: { requiredScopes: ['write'], execute },
    },
    policy: { deny: ['denied', { match: 'write', input: 'has(input.wrong)' }], ask: ['both'] },
    stepUp,
  })

describe('stepUp', () => {
  const gate = open(['write', 'admin'])

  it('lists the tools that lack nothing but these scopes', async () => {
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.ids, ['both', 'open', 'write'])
    assert.deepEqual((await open().view({ user: 'vera' })).ids, ['open'])
  })

  it('refuses their calls with every missing scope, and asks no person', async () => {
    const view = await gate.view({ user: 'vera', scopes: ['other'] })
    const outcome = await view.call({ tool: 'both', input: {} })
    assert.ok(outcome.status === 'refused')
    assert.deepEqual(outcome.decision.outcome, 'wait')
    assert.deepEqual(
      outcome.decision.reasons.map(({ code, scopes }) => [code, scopes]),
      [['scope_needed', ['admin', 'write']]],
    )
    assert.equal(outcome.text, 'both is unavailable: it needs the scopes admin, write.')
    assert.deepEqual(await gate.approvals.list(), [])
  })

  it('runs a tool once the caller has the scopes', async () => {
    const view = await gate.view({ user: 'vera', scopes: ['write'] })
    const outcome = await view.call({ tool: 'write', input: {} })
    assert.ok(outcome.status === 'done')
    const lacking = await view.call({ tool: 'both', input: {} })
    assert.ok(lacking.status === 'refused')
    assert.deepEqual(lacking.decision.reasons[0]?.scopes, ['admin'])
  })

  it('names no scopes where anything but the input is against the call', async () => {
    const view = await gate.view({ user: 'vera' })
    const unknown = await view.call({ tool: 'none' as never, input: {} })
    for (const tool of ['root', 'denied'] as const) {
      const outcome = await view.call({ tool, input: {} })
      assert.ok(outcome.status === 'refused' && unknown.status === 'refused')
      assert.equal(sentence(outcome.text), sentence(unknown.text).replace('none', tool))
    }
  })

  it('reveals nothing about the input until the caller has the scopes', async () => {
    const codesOf = async (scopes: readonly string[]) => {
      const view = await gate.view({ user: 'vera', scopes })
      const inputs = [{ wrong: true }, { n: 'not a number' }]
      const outcomes = await Promise.all(inputs.map((input) => view.call({ tool: 'write', input })))
      return outcomes.map((outcome) => outcome.status === 'refused' && outcome.decision.reasons[0]?.code)
    }
    assert.deepEqual(await codesOf([]), ['scope_needed', 'scope_needed'])
    assert.deepEqual(await codesOf(['write']), ['input_denied', 'input_invalid'])
  })

  it('must be a list of texts', () => {
    for (const stepUp of ['write', [7], {}])
      assert.throws(() => createGate({ stepUp: stepUp as never }), { code: 'config_invalid', message: /stepUp/ })
  })
})

/** The list of near names after it depends on the name. */
function sentence(text: string): string {
  return text.split('. ', 1)[0] ?? ''
}
