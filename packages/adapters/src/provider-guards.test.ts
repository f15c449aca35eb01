import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Gate, type GateOptions, UnknownToolError } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import type { PrepareStepContext } from '@toolgate/core/steps'
import { guard as guardAnthropic } from './anthropic.ts'
import { guard as guardGemini } from './gemini.ts'
import { type ChatCall, guard as guardOpenAI } from './openai.ts'
import { PROVIDER_LOOPS, type ProviderLoop, type Script } from './testing/provider-loops.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from './testing/world.ts'

const NAMES = ['alpha', 'delete_all', 'search']

function setUp(options: GateOptions = {}) {
  const witness = createWitness()
  const audit = createTestAudit()
  const tools = NAMES.map((name) => defineTool({ name, description: `The ${name}.`, execute: witness.body(name) }))
  const gate = createGate({ tools, policy: ADMINS_DELETE, audit, ...options })
  return { gate, audit, witness }
}

const CALLS_HIDDEN: Script = [[{ name: 'delete_all' }], [{ name: 'search' }]]
const NOT_AVAILABLE = (name: string) => `Tool "${name}" is not available. Available tools: alpha, search.`

async function approveAll(gate: Gate): Promise<void> {
  for (const { id } of await gate.approvals.list({ status: 'pending' }))
    await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
}

function describeProvider(loop: ProviderLoop): void {
  it('sends what is visible and runs nothing else, whatever the model names', async () => {
    const { gate, audit, witness } = setUp()
    const report = await loop.run({ gate, caller: VIEWER }, CALLS_HIDDEN)
    assert.deepEqual(report.sent, [
      ['alpha', 'search'],
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(report.told, [NOT_AVAILABLE('delete_all'), 'search done'])
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_blocked policy_denied',
      'search tool_call',
      'search tool_result',
    ])
  })

  it('sends request_tools where a group is locked, and what it opened from the next step on', async () => {
    const { gate, witness } = setUp({ groups: { found: { tools: ['search'], unlock: 'request' } } })
    const script: Script = [[{ name: 'request_tools', input: { group: 'found' } }], [{ name: 'search' }]]
    const { sent, told } = await loop.run({ gate, caller: { ...VIEWER, session: 's1' } }, script)
    assert.deepEqual(sent, [
      ['alpha', 'request_tools'],
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    const opened = 'The group "found" is open. In your list from your next step on: search.'
    assert.deepEqual(told, [opened, 'search done'])
    assert.deepEqual(witness.ran, ['search'])
  })

  it('tells of the bytes of what is hidden nothing', async () => {
    const { gate } = setUp()
    const { bodies } = await loop.run({ gate, caller: VIEWER }, [[{ name: 'search' }]])
    assert.doesNotMatch(JSON.stringify(bodies), /delete_all/)
  })

  for (const name of ['nothing_of_ours', 'constructor', '__proto__', 'Search', 'search '])
    it(`refuses ${JSON.stringify(name)}, with a record`, async () => {
      const { gate, audit, witness } = setUp()
      const { told } = await loop.run({ gate, caller: VIEWER }, [[{ name }]])
      // The nearest names first.
      assert.match(told[0] ?? '', /is not available\. Available tools: (alpha, search|search, alpha)\.$/)
      assert.ok(told[0]?.startsWith(`Tool "${name}" `))
      assert.deepEqual(audit.attempts(), [`${name} tool_blocked tool_not_found`])
      assert.deepEqual(witness.ran, [])
    })

  it('keeps overlapping runs of different callers apart', async () => {
    const { gate, witness } = setUp()
    const reports = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => loop.run({ gate, caller: i % 2 ? ADMIN : VIEWER }, CALLS_HIDDEN)),
    )
    for (const [i, { sent, told }] of reports.entries()) {
      assert.deepEqual(sent[0], i % 2 ? NAMES : ['alpha', 'search'])
      assert.equal(told[0], i % 2 ? 'delete_all done' : NOT_AVAILABLE('delete_all'))
    }
    assert.equal(witness.ran.filter((name) => name === 'delete_all').length, 6)
  })

  it('does not send from the next step on what is denied meanwhile, and does not run it in this one', async () => {
    const { gate, witness } = setUp()
    const deny = (index: number) => index === 1 && gate.setPolicy({ deny: ['alpha', 'delete_all'] })
    const beforeStep = (index: number) => void deny(index)
    const { sent, told } = await loop.run({ gate, caller: VIEWER, beforeStep }, [
      [{ name: 'alpha' }],
      [{ name: 'alpha' }],
    ])
    assert.deepEqual(sent.slice(0, 2), [['alpha', 'search'], ['search']])
    assert.deepEqual(told, ['alpha done', 'Tool "alpha" is not available. Available tools: search.'])
    assert.deepEqual(witness.ran, ['alpha'])
  })

  it('offers from the next step on what has come up', async () => {
    const availability = memoryAvailability({ web: { available: false, reason: 'the browser is off' } })
    const { gate } = setUp({ availability, groups: { web: { tools: ['alpha'], visibility: 'conditional' } } })
    const beforeStep = (index: number) => {
      if (index === 1) availability.set('web', { available: true })
    }
    const { sent, told } = await loop.run({ gate, caller: VIEWER, beforeStep }, [
      [{ name: 'alpha' }],
      [{ name: 'alpha' }],
    ])
    assert.deepEqual(sent.slice(0, 2), [['search'], ['alpha', 'search']])
    assert.deepEqual(told, ['alpha is unavailable: the browser is off.', 'alpha done'])
  })

  it('narrows a step and tells the model what is not active in it', async () => {
    const { gate, witness } = setUp()
    const warnings: string[] = []
    const { sent, told } = await loop.run(
      {
        gate,
        caller: VIEWER,
        options: {
          prepareStep: ({ hasUsedTool }) =>
            hasUsedTool('search') ? { activeTools: ['alpha', 'delete_all'] } : undefined,
          onWarning: (warning) => warnings.push(warning),
        },
      },
      [[{ name: 'search' }], [{ name: 'search' }], [{ name: 'alpha' }]],
    )
    assert.deepEqual(sent.slice(0, 3), [['alpha', 'search'], ['alpha'], ['alpha']])
    assert.match(told[1] ?? '', /^search is not active in this step/)
    assert.deepEqual(witness.ran, ['search', 'alpha'])
    assert.match(warnings.join(), /^"delete_all" is not visible in this step: /)
  })

  it('sends no tools where a step has none', async () => {
    const { gate, witness } = setUp()
    const { sent, told } = await loop.run(
      { gate, caller: VIEWER, options: { prepareStep: () => ({ activeTools: [] }) } },
      [[{ name: 'search' }]],
    )
    assert.deepEqual(sent[0], [])
    assert.match(told[0] ?? '', /^search is not active in this step/)
    assert.deepEqual(witness.ran, [])
  })

  it('knows no names that the catalog has never seen', async () => {
    const { gate } = setUp()
    const options = { prepareStep: () => ({ activeTools: ['serach'] }) }
    const unknown = (error: unknown) => error instanceof UnknownToolError && /"search"/.test(error.message)
    await assert.rejects(loop.run({ gate, caller: VIEWER, options }, []), unknown)
    await assert.rejects(loop.run({ gate, caller: VIEWER, options: { activeTools: ['serach'] } }, []), unknown)
  })

  it('lets a person approve, once: a replay asks again, and what was hidden meanwhile does not run', async () => {
    const { gate, audit, witness } = setUp({ policy: { ask: ['delete_all'] } })
    const calls: Script = [[{ name: 'delete_all' }]]
    assert.deepEqual((await loop.run({ gate, caller: VIEWER }, calls)).told, ['Waiting for approval of delete_all.'])
    await approveAll(gate)
    assert.deepEqual((await loop.run({ gate, caller: VIEWER }, calls)).told, ['delete_all done'])
    assert.deepEqual((await loop.run({ gate, caller: VIEWER }, calls)).told, ['Waiting for approval of delete_all.'])
    await approveAll(gate)
    gate.setPolicy({ deny: ['delete_all'] })
    assert.deepEqual((await loop.run({ gate, caller: VIEWER }, calls)).told, [NOT_AVAILABLE('delete_all')])
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_approval_required approval_required',
      'delete_all tool_call',
      'delete_all tool_result',
      'delete_all tool_approval_required approval_required',
      'delete_all tool_blocked policy_denied',
    ])
  })

  it('binds an approval to the run that the host names', async () => {
    const { gate } = setUp({ policy: { ask: ['alpha'] } })
    const calls: Script = [[{ name: 'alpha' }]]
    const within = (runId: string) => loop.run({ gate, caller: VIEWER, options: { runId } }, calls)
    await within('one')
    await approveAll(gate)
    assert.deepEqual((await within('two')).told, ['Waiting for approval of alpha.'])
    assert.deepEqual((await within('one')).told, ['alpha done'])
  })

  it('holds a limit however many calls one answer makes', async () => {
    const { gate, witness, audit } = setUp({ limits: 'search:3/60' })
    const { told } = await loop.run({ gate, caller: VIEWER }, [Array.from({ length: 10 }, () => ({ name: 'search' }))])
    assert.equal(witness.ran.length, 3)
    assert.equal(told.filter((text) => text.startsWith('TOOL_CALL_BLOCKED: rate limited (3/60).')).length, 7)
    assert.equal(audit.attempts().filter((attempt) => attempt.includes('tool_rate_limited')).length, 7)
  })

  it('records the run, the step and the model of each call', async () => {
    const { gate, audit } = setUp()
    const options = { runId: 'run-7', model: 'scripted-1' }
    await loop.run({ gate, caller: VIEWER, options }, [[{ name: 'search' }], [{ name: 'alpha' }]])
    assert.deepEqual(
      audit.records.map(({ run_id, step, model }) => [run_id, step, model]),
      [0, 0, 1, 1].map((step) => ['run-7', step, 'scripted-1']),
    )
  })

  it('tells of a tool that throws, and gives the last item of one that streams', async () => {
    const audit = createTestAudit()
    const gate = createGate({
      audit,
      tools: {
        breaks: {
          execute() {
            throw new Error('no disk')
          },
        },
        counts: {
          async *execute() {
            yield 'one'
            yield 'two'
          },
        },
        stops: {
          // oxlint-disable-next-line require-yield -- it stops before its first item
          async *execute() {
            throw new Error('torn')
          },
        },
      },
    })
    const names = ['breaks', 'counts', 'stops']
    const { told } = await loop.run({ gate, caller: VIEWER }, [names.map((name) => ({ name }))])
    assert.deepEqual(told, ['breaks failed: no disk', 'two', 'stops failed: torn'])
    assert.equal(audit.attempts().filter((attempt) => attempt.endsWith('tool_result')).length, 1)
    assert.equal(audit.attempts().filter((attempt) => attempt.endsWith('tool_result tool_failed')).length, 2)
  })

  it('has an answer for a stream that ends with what JSON cannot say, or with what is no error', async () => {
    const gate = createGate({
      tools: {
        counts: {
          async *execute() {
            yield { rows: 7n }
          },
        },
        stops: {
          // oxlint-disable-next-line require-yield -- it stops before its first item
          async *execute() {
            throw Object.create(null) as unknown
          },
        },
      },
    })
    const { told } = await loop.run({ gate, caller: VIEWER }, [[{ name: 'counts' }, { name: 'stops' }]])
    assert.deepEqual(told, ['{"rows":7}', 'stops failed: an error without a text'])
  })

  it('loses no answer to a host that fails to hear of the call, and warns of it', async () => {
    const { gate } = setUp()
    const warnings: string[] = []
    const options = {
      onCall() {
        throw new Error('the log is full')
      },
      onWarning: (warning: string) => warnings.push(warning),
    }
    const { told } = await loop.run({ gate, caller: VIEWER, options }, [[{ name: 'search' }]])
    assert.deepEqual([told, warnings], [['search done'], ['onCall failed: the log is full']])
  })

  it('maps names that the provider refuses, both ways', async () => {
    const witness = createWitness()
    const gate = createGate({ tools: { 'files.eu:read/all': { execute: witness.body('read') } } })
    const { sent } = await loop.run({ gate, caller: VIEWER }, [])
    const name = sent[0]?.[0] ?? ''
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
    const { told } = await loop.run({ gate, caller: VIEWER }, [[{ name }]])
    assert.deepEqual([told, witness.ran], [['read done'], ['read']])
  })

  it('checks the input against the schema', async () => {
    const { witness, audit } = setUp()
    const inputSchema = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }
    const gate = createGate({ tools: { search: { inputSchema, execute: witness.body('search') } }, audit })
    const { told } = await loop.run({ gate, caller: VIEWER }, [[{ name: 'search', input: { q: 5 } }]])
    assert.match(told[0] ?? '', /^TOOL_CALL_BLOCKED: .*\/q/)
    assert.deepEqual([witness.ran, audit.attempts()], [[], ['search tool_blocked input_invalid']])
  })

  it('ends with the host’s signal', async () => {
    const controller = new AbortController()
    const gate = createGate({
      tools: { waits: { execute: () => new Promise(() => controller.abort(new Error('gone'))) } },
    })
    const options = { signal: controller.signal }
    const { told } = await loop.run({ gate, caller: VIEWER, options }, [[{ name: 'waits' }]])
    assert.deepEqual(told, ['waits failed: gone'])
  })

  if (loop.sendsText)
    it('refuses arguments that are no JSON, with a record', async () => {
      const { gate, audit, witness } = setUp()
      const { told } = await loop.run({ gate, caller: VIEWER }, [[{ name: 'search', json: '{"q": ' }]])
      assert.match(told[0] ?? '', /^TOOL_CALL_BLOCKED: .*the arguments are not JSON/)
      assert.deepEqual([witness.ran, audit.attempts()], [[], ['search tool_blocked input_invalid']])
    })

  if (loop.mask)
    it('sends the same array in each step where it may mask, and still runs only what the step has', async () => {
      const { gate, witness } = setUp()
      const options = {
        mode: 'mask' as const,
        prepareStep: ({ stepNumber }: PrepareStepContext) =>
          stepNumber === 1 ? { activeTools: ['alpha'] } : undefined,
      }
      const script: Script = [[{ name: 'search' }], [{ name: 'search' }]]
      const { sent, bodies, told } = await loop.run({ gate, caller: VIEWER, options }, script)
      assert.deepEqual(sent[0], ['alpha', 'search'])
      assert.deepEqual(sent[1], sent[0])
      assert.deepEqual(JSON.stringify(bodies[1]?.['tools']), JSON.stringify(bodies[0]?.['tools']))
      const { tools: _, input: _i, messages: _m, contents: _c, ...rest } = bodies[1] ?? {}
      assert.match(JSON.stringify(rest), /alpha/)
      assert.doesNotMatch(JSON.stringify(rest), /search/)
      assert.match(told[1] ?? '', /^search is not active in this step/)
      assert.deepEqual(witness.ran, ['search'])
    })
}

for (const loop of PROVIDER_LOOPS) describe(`guard for ${loop.name}`, () => describeProvider(loop))

describe('guard for a plain provider', () => {
  it('has a request before it has calls', async () => {
    const { gate } = setUp()
    const call = { type: 'function_call', name: 'search', arguments: '{}', call_id: 'c' } as const
    await assert.rejects((await guardOpenAI(gate, VIEWER)).execute(call), {
      code: 'config_invalid',
      message: /next\(\)/,
    })
  })

  it('takes calls by the interface it was told of, also where they do not say what they are', async () => {
    const { gate, witness, audit } = setUp()
    const run = await guardOpenAI(gate, VIEWER, { api: 'chat' })
    await run.next()
    const call = { id: 'c1', function: { name: 'search', arguments: '{}' } }
    assert.deepEqual(await run.execute(call as ChatCall), { role: 'tool', tool_call_id: 'c1', content: 'search done' })
    const { content } = await run.execute({ id: 'c2', type: 'custom', custom: { name: 'search' } } as never)
    assert.match(content, /^Tool "" is not available\./)
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts().at(-1), ' tool_blocked tool_not_found')
    await assert.rejects(guardOpenAI(gate, VIEWER, { api: 'completions' as 'chat' }), {
      message: 'api: must be one of responses, chat',
    })
  })

  it('can be taken apart', async () => {
    const { gate } = setUp()
    const openAI = await guardOpenAI(gate, VIEWER, { api: 'chat' })
    const anthropic = await guardAnthropic(gate, VIEWER)
    const gemini = await guardGemini(gate, VIEWER)
    for (const run of [openAI, anthropic, gemini]) {
      assert.equal(typeof run.step, 'undefined')
      await run.next()
      assert.equal(run.step?.stepNumber, 0)
      assert.deepEqual(run.view.ids, ['alpha', 'search'])
    }
    const { execute } = gemini
    assert.deepEqual(await execute({ name: 'search' }), {
      functionResponse: { name: 'search', response: { output: 'search done' } },
    })
  })
})
