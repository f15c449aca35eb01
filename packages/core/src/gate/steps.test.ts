import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate } from './gate.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { createSteps, type PrepareStepContext, unchanged, withTools } from './steps.ts'
import type { RunFacts } from '../history/facts.ts'
import type { Policy } from '../policy/policy.ts'
import { defineTool } from '../tools/tool.ts'

const names = ['analyze', 'search', 'write'] as const
const make = () =>
  createGate({
    tools: [...names, 'secret'].map((name) => defineTool({ name, execute: () => `ran ${name}` })),
    policy: { deny: ['secret'] },
  })
const done = (tool: string) => ({ tool, callId: tool, status: 'done' as const })

describe('createSteps', () => {
  it('narrows each step as prepareStep says, and by what the run has done', async () => {
    const view = await make().view({ user: 'vera' })
    const steps = createSteps(view, {
      prepareStep({ stepNumber, hasUsedTool }) {
        if (stepNumber === 0) return withTools('search')
        return hasUsedTool('search') ? withTools('analyze', 'write') : unchanged()
      },
    })
    assert.deepEqual((await steps.next()).view.ids, ['search'])
    steps.record({ ...done('search'), status: 'refused' })
    assert.deepEqual((await steps.next()).view.ids, [...names], 'a refused call is no use')
    steps.record(done('search'))
    assert.deepEqual((await steps.next()).view.ids, ['analyze', 'write'])
  })

  it('goes on from the steps of a run so far', async () => {
    const view = await make().view({ user: 'vera' })
    const seen: unknown[] = []
    const steps = createSteps(view, {
      earlier: [{ stepNumber: 0, calls: [done('search')] }],
      prepareStep({ stepNumber, hasUsedTool, previousToolCalls }) {
        seen.push([stepNumber, hasUsedTool('search'), previousToolCalls().length])
        return unchanged()
      },
    })
    steps.record(done('write'))
    assert.equal((await steps.next()).stepNumber, 1)
    assert.deepEqual(seen, [[1, true, 2]])
    // A host may keep the latest only.
    const late = createSteps(view, { earlier: [{ stepNumber: 7, calls: [] }] })
    assert.deepEqual([(await late.next()).stepNumber, (await late.next()).stepNumber], [8, 9])
  })

  describe('with what the run has done', () => {
    const CLEAN: RunFacts = { labels: [], matched: () => false, origin: () => 'user' }
    const TAINTED: RunFacts = { ...CLEAN, labels: ['untrusted'], raisedBy: () => [{ tool: 'search', atMs: 0 }] }
    const tainted = "'untrusted' in run.labels"
    const idsWith = async (policy: Policy, facts?: RunFacts) => {
      const gate = createGate({ tools: names.map((name) => defineTool({ name, execute: () => '' })), policy })
      const { view } = await createSteps(await gate.view({ user: 'vera' })).next({ facts })
      return view.ids
    }

    it('hides what rules deny that read the run and no input', async () => {
      const policies: readonly Policy[] = [
        { deny: [{ match: 'write', when: tainted }] },
        { deny: [{ match: 'write', input: tainted }] },
        { allow: ['search', 'analyze', { match: 'write', unless: tainted }] },
        { allow: ['search', 'analyze', { match: 'write', when: `run.called('analyze') || !(${tainted})` }] },
      ]
      for (const policy of policies) {
        assert.deepEqual(await idsWith(policy, TAINTED), ['analyze', 'search'], JSON.stringify(policy))
        assert.deepEqual(await idsWith(policy, CLEAN), names, JSON.stringify(policy))
        assert.deepEqual(await idsWith(policy), names, 'where nothing is said of the run')
      }
    })

    it('leaves to the call what needs an input, and what asks', async () => {
      const policies: readonly Policy[] = [
        { deny: [{ match: 'write', input: `${tainted} && input.path == 'a'` }] },
        { deny: [{ match: 'write', when: `${tainted} && origin(addressees) == 'untrusted'` }] },
        { deny: [{ match: 'write', when: tainted, input: ({ input }) => input === 1 }] },
        { allow: ['search', 'analyze', { match: 'write', input: `!(${tainted}) || input.path == 'a'` }] },
        { ask: [{ match: 'write', when: tainted }] },
      ]
      for (const policy of policies) assert.deepEqual(await idsWith(policy, TAINTED), names, JSON.stringify(policy))
    })

    it('explains a call of a hidden tool, and offers it again in a later step', async () => {
      const gate = createGate({
        tools: names.map((name) => defineTool({ name, execute: () => 'ran' })),
        policy: { deny: [{ match: 'write', when: tainted }] },
      })
      const steps = createSteps(await gate.view({ user: 'vera' }))
      const { view } = await steps.next({ facts: TAINTED })
      const { text } = await view.call({ tool: 'write', input: {} })
      assert.match(text, /^TOOL_CALL_BLOCKED: This run has read search, whose output is untrusted\./)
      assert.deepEqual(view.notices, [])
      assert.deepEqual((await steps.next({ facts: CLEAN })).view.ids, names)
    })

    it('hides it beside active tools', async () => {
      const gate = createGate({
        tools: names.map((name) => defineTool({ name })),
        policy: { deny: [{ match: 'write', when: tainted }] },
      })
      const steps = createSteps(await gate.view({ user: 'vera' }), { prepareStep: () => withTools('write', 'search') })
      assert.deepEqual((await steps.next({ facts: TAINTED })).view.ids, ['search'])
    })
  })

  it('rejects an invalid answer, as it may have intended to narrow', async () => {
    const view = await make().view({ user: 'vera' })
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      ...['search', 5, true, ['search'], () => ['search']].map(
        (answer) => [answer, /^prepareStep: must give/] as const,
      ),
      ...[null, 'search', [5], { 0: 'search', length: 1 }, new Set(['search'])].map(
        (activeTools) => [{ activeTools }, /^prepareStep\.activeTools: must be a list/] as const,
      ),
      [{ actvieTools: [] }, /^prepareStep\.actvieTools: unknown key/],
    ]
    for (const [answer, message] of wrong) {
      const steps = createSteps(view, { prepareStep: () => answer as never })
      await assert.rejects(steps.next(), { code: 'config_invalid', message })
    }
    for (const answer of [undefined, null, {}, { activeTools: undefined }]) {
      const steps = createSteps(view, { prepareStep: () => answer as never })
      assert.deepEqual((await steps.next()).view.ids, names)
    }
  })

  it('cannot widen, runs nothing outside the step, and warns the developer of what is hidden', async () => {
    const view = await make().view({ user: 'vera' }, { activeTools: ['search', 'write'] })
    const steps = createSteps(view, { prepareStep: () => withTools('analyze', 'search', 'secret') })
    const step = await steps.next()
    assert.deepEqual(step.view.ids, ['search'])
    assert.deepEqual(step.warnings, [
      '"analyze" is not visible in this step: it is not among the active tools of this step',
      '"secret" is not visible in this step: policy "policy 1" denies secret',
    ])
    assert.equal((await step.view.call({ tool: 'write' })).status, 'refused')
  })

  it('refuses a name that the catalog has never seen, naming the nearest', async () => {
    const steps = createSteps(await make().view({}), { prepareStep: () => withTools('serch') })
    await assert.rejects(steps.next(), { code: 'tool_unknown', message: /"serch".*Did you mean "search"/ })
  })

  it('takes an empty list for no tools, and no answer for no change', async () => {
    const view = await make().view({})
    assert.deepEqual((await createSteps(view, { prepareStep: () => withTools() }).next()).view.ids, [])
    assert.deepEqual((await createSteps(view, { prepareStep: async () => undefined }).next()).view.ids, [...names])
    assert.deepEqual((await createSteps(view).next()).view.ids, [...names])
  })

  it('carries instructions and context forward, and model, options and active tools not', async () => {
    const seen: PrepareStepContext<{ id: number }, string>[] = []
    const steps = createSteps(await make().view({ user: 'vera' }), {
      state: { id: 7 },
      context: 'start',
      instructions: 'Be brief.',
      prepareStep(context: PrepareStepContext<{ id: number }, string>) {
        seen.push(context)
        if (context.stepNumber > 0) return undefined
        return {
          activeTools: ['search'],
          instructions: 'Search first.',
          context: 'searched',
          model: 'm',
          options: { temperature: 0 },
        }
      },
    })
    const [first, second] = [await steps.next(), await steps.next()]
    assert.deepEqual(
      [first.instructions, first.context, first.model, first.options],
      ['Search first.', 'searched', 'm', { temperature: 0 }],
    )
    assert.deepEqual(
      [second.instructions, second.context, second.model, second.options],
      ['Search first.', 'searched', undefined, undefined],
    )
    assert.deepEqual(second.view.ids, [...names])
    assert.deepEqual(
      seen.map(({ stepNumber, context, state, caller }) => [stepNumber, context, state.id, caller.user]),
      [
        [0, 'start', 7, 'vera'],
        [1, 'searched', 7, 'vera'],
      ],
    )
  })

  it('reads availability again before each step', async () => {
    const availability = memoryAvailability({ lab: { available: false } })
    const gate = createGate({
      tools: names.map((name) => defineTool({ name, execute: () => name })),
      groups: { lab: { tools: ['analyze'], visibility: 'conditional' } },
      availability,
    })
    const steps = createSteps(await gate.view({}))
    assert.deepEqual((await steps.next()).view.ids, ['search', 'write'])
    availability.set('lab', { available: true })
    assert.deepEqual((await steps.next()).view.ids, [...names])
  })

  it('shows prepareStep the calls of earlier steps, frozen', async () => {
    let last: PrepareStepContext | undefined
    const steps = createSteps(await make().view({}), {
      prepareStep(context: PrepareStepContext<undefined, undefined>) {
        last = context
        return undefined
      },
    })
    await steps.next()
    steps.record(done('search'))
    await steps.next()
    assert.deepEqual(last?.previousToolCalls(), [done('search')])
    assert.deepEqual(last?.steps, [{ stepNumber: 0, calls: [done('search')] }])
    assert.ok(Object.isFrozen(last?.steps[0]?.calls))
  })

  it('passes an error of prepareStep on, and counts no step for it', async () => {
    let fail = true
    const steps = createSteps(await make().view({}), {
      prepareStep() {
        if (fail) throw new Error('not ready')
        return undefined
      },
    })
    await assert.rejects(steps.next(), { message: 'not ready' })
    fail = false
    assert.equal((await steps.next()).stepNumber, 0)
  })

  describe('hasUsedTool', () => {
    const ask = async (gate: Gate, name: string) => {
      const steps = createSteps(await gate.view({ user: 'vera' }), {
        prepareStep: ({ hasUsedTool }) => (hasUsedTool(name) ? withTools() : unchanged()),
      })
      return (await steps.next()).view.ids
    }

    it('refuses a name that no tool has, with the nearest', async () => {
      await assert.rejects(ask(make(), 'serach'), {
        name: 'ConfigError',
        path: 'hasUsedTool',
        message: /Unknown tool "serach"\. Did you mean "search"/,
      })
    })

    it('knows tools that are hidden from the caller', async () => {
      assert.deepEqual(await ask(make(), 'secret'), [...names])
    })

    it('takes every name where tools can still come', async () => {
      const source = { name: 'live', tools: () => [defineTool({ name: 'search' })], subscribe: () => () => {} }
      assert.deepEqual(await ask(createGate({ sources: [source] }), 'serach'), ['search'])
    })
  })
})
