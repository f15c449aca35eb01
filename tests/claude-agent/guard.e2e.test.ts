import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type SDKUserMessage, tool } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent, guard } from '@toolgate/adapters/claude-agent'
import { z } from 'zod'
import { ADMIN, ADMINS_DELETE, VIEWER } from '../../packages/adapters/src/testing/world.ts'
import { BYPASS, createPlace, type Place, use } from './support/query.ts'
import { createWorld } from './support/world.ts'

const SEARCH = 'mcp__gate__search'
const DELETE = 'mcp__gate__delete_all'

describe('guard of the Claude Agent SDK, tools that the gate runs', () => {
  let place: Place
  before(() => (place = createPlace()))
  after(() => place.close())

  it('sends the model what its caller may see, and nothing else of the gate', async () => {
    const { gate, witness, audit } = createWorld()
    const { requests, told } = await place.run([[use(SEARCH)]], await guard(gate, VIEWER))
    assert.deepEqual(requests[0]?.tools, ['mcp__gate__alpha', SEARCH])
    assert.ok(!requests.some(({ text }) => text.includes('delete_all')))
    assert.equal(told.get('toolu_1'), 'search done')
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(audit.attempts(), ['search tool_call', 'search tool_result'])
  })

  it('runs nothing hidden that the model calls all the same, by whatever name, and records it', async () => {
    const { gate, witness, audit } = createWorld()
    const names = [DELETE, 'delete_all', 'mcp__gate__nothing', 'mcp__other__delete_all', 'constructor', '__proto__']
    const calls = names.map((name, i) => use(name, {}, `toolu_${i}`))
    const { told } = await place.run([calls], await guard(gate, VIEWER))
    for (const [i, name] of names.entries())
      assert.equal(told.get(`toolu_${i}`), `<tool_use_error>Error: No such tool available: ${name}</tool_use_error>`)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts().toSorted(), [
      '__proto__ tool_blocked tool_not_found',
      'constructor tool_blocked tool_not_found',
      'delete_all tool_blocked policy_denied',
      'delete_all tool_blocked tool_not_found',
      'mcp__gate__nothing tool_blocked tool_not_found',
      'mcp__other__delete_all tool_blocked tool_not_found',
    ])
  })

  it('decides a call by an alias as a call of what it stands for', async () => {
    const { gate, witness } = createWorld()
    const toolAliases = { Find: SEARCH, Wipe: DELETE }
    const { told } = await place.run([[use('Find', {}, 'a'), use('Wipe', {}, 'b')]], {
      toolAliases,
      ...(await guard(gate, VIEWER)),
    })
    assert.equal(told.get('a'), 'search done')
    assert.match(told.get('b') ?? '', /No such tool available/)
    assert.deepEqual(witness.ran, ['search'])
  })

  it('keeps overlapping queries of one gate apart', async () => {
    const { gate, witness, audit } = createWorld()
    const callers = [VIEWER, ADMIN, VIEWER, ADMIN, VIEWER, ADMIN]
    const all = await Promise.all(
      callers.map(async (caller) => place.run([[use(DELETE)], [use(SEARCH)]], await guard(gate, caller))),
    )
    for (const [i, { requests, told }] of all.entries()) {
      const isAdmin = callers[i] === ADMIN
      assert.equal(requests.length, 3)
      for (const { tools } of requests) assert.equal(tools.includes(DELETE), isAdmin)
      assert.equal(
        requests.some(({ tools }) => tools.includes(DELETE)),
        isAdmin,
      )
      assert.equal(told.size, 1)
    }
    assert.deepEqual(witness.ran.toSorted(), [...Array(3).fill('delete_all'), ...Array(6).fill('search')])
    const ended = audit.records.filter(({ event }) => event !== 'tool_call')
    assert.equal(ended.length, 12)
    assert.ok(
      ended.every(
        ({ tool: id, user_id, event }) => id !== 'delete_all' || (user_id === 'ada') === (event === 'tool_result'),
      ),
    )
  })

  it('decides at each call, so that what is hidden in the middle of a query runs no more', async () => {
    const { gate, witness, audit } = createWorld()
    const { told } = await place.run(
      (_, index) => {
        if (index === 1) gate.setPolicy([ADMINS_DELETE, { deny: ['search'] }])
        return index < 2 ? [use(SEARCH, {}, `toolu_${index}`)] : [{ type: 'text', text: 'Done.' }]
      },
      await guard(gate, VIEWER),
    )
    assert.equal(told.get('toolu_1'), `Tool "${SEARCH}" is not available. Available tools: mcp__gate__alpha.`)
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts().at(-1), 'search tool_blocked policy_denied')
  })

  it('tells the model what the gate tells it, word for word', async () => {
    const { gate, witness, audit } = createWorld({
      tools: {
        write: {
          inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
          execute: () => 'written',
        },
        fail: { execute: () => Promise.reject(new Error('disk full')) },
      },
      policy: [
        ADMINS_DELETE,
        { deny: [{ match: 'write', input: "!within(input.path, '/workspace')", message: 'Only below /workspace.' }] },
      ],
    })
    const write = (input: object, id: string) => use('mcp__gate__write', input, id)
    const calls = [
      write({ path: '/workspace/a' }, 'good'),
      write({ path: '/etc/passwd' }, 'outside'),
      write({ path: 7 }, 'invalid'),
      use('mcp__gate__fail', {}, 'failed'),
    ]
    const { told } = await place.run([calls], await guard(gate, VIEWER))
    assert.deepEqual(Object.fromEntries(told), {
      good: 'written',
      outside: 'TOOL_CALL_BLOCKED: Only below /workspace.',
      invalid: 'TOOL_CALL_BLOCKED: invalid input at "/path": must be string',
      failed: 'mcp__gate__fail failed: disk full',
    })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts().toSorted(), [
      'fail tool_call',
      'fail tool_result tool_failed',
      'write tool_blocked input_denied',
      'write tool_blocked input_invalid',
      'write tool_call',
      'write tool_result',
    ])
  })

  it('keeps a limit exactly, however many calls are made at once', async () => {
    const { gate, witness, audit } = createWorld({ limits: 'search:2/60' })
    const calls = [1, 2, 3, 4, 5].map((i) => use(SEARCH, { i }, `toolu_${i}`))
    const { told } = await place.run([calls], await guard(gate, VIEWER))
    const limited = [...told.values()].filter((text) =>
      /^TOOL_CALL_BLOCKED: rate limited \(2\/60\)\. Try again in \d+ s\.$/.test(text),
    )
    assert.equal(limited.length, 3)
    assert.deepEqual(witness.ran, ['search', 'search'])
    assert.equal(audit.attempts().filter((attempt) => attempt === 'search tool_rate_limited rate_limited').length, 3)
  })

  it('maps names that no provider takes, and maps them back', async () => {
    const long = `files:${'x'.repeat(100)}`
    const ran: string[] = []
    const body = (name: string) => () => void ran.push(name)
    const { gate } = createWorld({
      tools: { 'files:läs_fil': { execute: body('läs_fil') }, [long]: { execute: body('long') } },
    })
    const { requests, result } = await place.run(
      ({ tools }, index) =>
        index > 0 ? [{ type: 'text', text: 'Done.' }] : tools.map((name, i) => use(name, {}, `t${i}`)),
      await guard(gate, VIEWER, { activeTools: ['files:läs_fil', long] }),
    )
    assert.equal(requests[0]?.tools.length, 2)
    for (const name of requests[0]?.tools ?? []) assert.match(name, /^[A-Za-z0-9_-]{1,128}$/)
    assert.deepEqual(ran.toSorted(), ['long', 'läs_fil'])
    assert.equal(result?.subtype, 'success')
  })

  it('runs what tool() of the SDK gives, with its schema, its result and what it says to the harness', async () => {
    const seen: unknown[] = []
    const lookUp = tool(
      'look_up',
      'Looks up.',
      { word: z.string(), times: z.number().default(2) },
      async (input, extra) => {
        seen.push(input, typeof (extra as { sendNotification: unknown }).sendNotification)
        return {
          content: [
            { type: 'text', text: 'found' },
            { type: 'text', text: ' it' },
          ],
        }
      },
      { alwaysLoad: true },
    )
    const { gate, audit } = createWorld({ tools: fromClaudeAgent([lookUp], { look_up: { tags: ['read'] } }) })
    const options = await guard(gate, VIEWER)
    const { requests, told } = await place.run([[use('mcp__gate__look_up', { word: 'a', other: 1 })]], options)
    assert.match(requests[0]?.text ?? '', /"name":"mcp__gate__look_up","description":"Looks up."/)
    assert.deepEqual(seen, [{ word: 'a', times: 2 }, 'function'])
    assert.equal(told.get('toolu_1'), 'found it')
    assert.deepEqual(audit.attempts(), ['look_up tool_call', 'look_up tool_result'])
  })

  it('gives the last item of an async generator', async () => {
    async function* execute() {
      yield 'one'
      yield 'one and two'
    }
    const { gate, audit } = createWorld({ tools: { counts: { execute } } })
    const { told } = await place.run([[use('mcp__gate__counts')]], await guard(gate, VIEWER))
    assert.equal(told.get('toolu_1'), 'one and two')
    assert.deepEqual(audit.attempts(), ['counts tool_call', 'counts tool_result'])
  })

  it('goes on over all messages of a stream, and leaves what is streamed as it is', async () => {
    const { gate, witness, audit } = createWorld()
    const answered = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    async function* prompt(): AsyncGenerator<SDKUserMessage> {
      for (const { promise } of answered) {
        yield { type: 'user', message: { role: 'user', content: 'Search.' }, parent_tool_use_id: null }
        await promise
      }
    }
    const { requests, parts } = await place.run(
      (_, index) => {
        if (index % 2 === 0) return [use(SEARCH, {}, `toolu_${index}`)]
        answered[index === 1 ? 0 : 1].resolve()
        return [{ type: 'text', text: 'Found.' }]
      },
      { includePartialMessages: true, ...(await guard(gate, VIEWER)) },
      prompt(),
    )
    assert.equal(requests.length, 4)
    assert.ok(parts > 0)
    assert.deepEqual(witness.ran, ['search', 'search'])
    assert.deepEqual(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
  })

  it('aborts what runs when the query is aborted, and records that', async () => {
    let aborted = false
    const abortController = new AbortController()
    const execute = (_: unknown, call: { signal: AbortSignal }) =>
      new Promise((_resolve, reject) => {
        call.signal.addEventListener('abort', () => {
          aborted = true
          reject(new Error('gone'))
        })
        abortController.abort()
      })
    const { gate, audit } = createWorld({ tools: { waits: { execute } } })
    const { error } = await place.run([[use('mcp__gate__waits')]], await guard(gate, VIEWER, { abortController }))
    assert.ok(error instanceof Error)
    await gate.close()
    assert.ok(aborted)
    assert.deepEqual(audit.attempts(), ['waits tool_call', 'waits tool_abandoned tool_aborted'])
  })

  it('is not opened by whatever the options say after it', async () => {
    const { gate, witness } = createWorld({
      policy: [ADMINS_DELETE, { deny: [{ match: 'search', input: 'input.q == "secrets"' }] }],
    })
    const { told } = await place.run([[use(DELETE, {}, 'a'), use(SEARCH, { q: 'secrets' }, 'b')]], {
      ...(await guard(gate, VIEWER)),
      ...BYPASS,
      hooks: {},
      allowedTools: [SEARCH, DELETE],
    })
    assert.match(told.get('a') ?? '', /No such tool available/)
    assert.equal(told.get('b'), 'TOOL_CALL_BLOCKED: this input is not allowed')
    assert.deepEqual(witness.ran, [])
  })
})
