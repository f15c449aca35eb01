import assert from 'node:assert/strict'
import path from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { createSdkMcpServer, tool } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent, guard } from '@toolgate/adapters/claude-agent'
import { createGate, type Gate, type Policy, type ToolRecord, type View } from '@toolgate/core'
import { ADMIN, createTestAudit, VIEWER } from '../../packages/adapters/src/testing/world.ts'
import { BYPASS, createPlace, type Place, type Ran, use } from './support/query.ts'

/** Viewers read; what they write is below the folder of the place. */
const READERS: Policy = { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }] }
const BUILT_INS = ['Bash', 'Read', 'Write'] as const

describe('guard of the Claude Agent SDK, tools that the harness runs', () => {
  let place: Place
  before(() => (place = createPlace()))
  after(() => place.close())
  const gates: Gate[] = []
  afterEach(() => Promise.all(gates.splice(0).map((gate) => gate.close())))

  function createWorld(options: { policy?: Policy | Policy[]; limits?: string; hooks?: object } = {}) {
    const audit = createTestAudit()
    const tools: ToolRecord = fromClaudeAgent(BUILT_INS, { Bash: { tags: ['danger'] } })
    const gate = createGate({ tools, sources: [], policy: READERS, audit, ...options })
    gates.push(gate)
    return { gate, audit }
  }

  const write = (file: string, id = 'toolu_1') =>
    use('Write', { file_path: path.join(place.cwd, file), content: file }, id)
  const bash = (command: string, id = 'toolu_1') => use('Bash', { command }, id)

  it('sends the model the built-ins that its caller may see, and none that the gate does not know', async () => {
    const { gate } = createWorld()
    const viewer = await place.run([], await guard(gate, VIEWER))
    assert.deepEqual(viewer.requests[0]?.tools, ['Read', 'Write'])
    const admin = await place.run([], await guard(gate, ADMIN, { tools: ['Bash', 'Read'] }))
    assert.deepEqual(admin.requests[0]?.tools, ['Bash', 'Read'])
  })

  it('runs no hidden built-in that the model calls all the same, and records it', async () => {
    const { gate, audit } = createWorld()
    const { told } = await place.run([[bash('echo x > hidden'), use('Edit', {}, 'b')]], {
      ...BYPASS,
      ...(await guard(gate, VIEWER, { allowedTools: ['Bash', 'Edit'] })),
    })
    assert.match(told.get('toolu_1') ?? '', /No such tool available: Bash/)
    assert.match(told.get('b') ?? '', /No such tool available: Edit/)
    assert.ok(!place.wrote('hidden'))
    assert.deepEqual(audit.attempts(), ['Bash tool_blocked policy_denied', 'Edit tool_blocked tool_not_found'])
  })

  it('leaves one record of the call and one of its end', async () => {
    const { gate, audit } = createWorld()
    const { told } = await place.run(
      [[bash('echo hello; exit 3', 'a'), use('Read', { file_path: place.cwd }, 'b'), write('written', 'c')]],
      {
        ...BYPASS,
        ...(await guard(gate, ADMIN)),
      },
    )
    assert.match(told.get('a') ?? '', /Exit code 3/)
    assert.ok(place.wrote('written'))
    const ends = ['Bash tool_result tool_failed', 'Read tool_result tool_failed', 'Write tool_result']
    assert.deepEqual(
      audit
        .attempts()
        .filter((attempt) => !attempt.endsWith('tool_call'))
        .toSorted(),
      ends,
    )
    assert.equal(audit.attempts().length, 6)
    const record = audit.records.find(({ tool: id }) => id === 'Write')
    assert.equal(record?.tool_call_id, 'c')
    assert.equal(record?.user_id, 'ada')
    assert.match(record?.run_id ?? '', /^[0-9a-f-]{36}$/)
  })

  it('decides by the input also where the harness asks nobody', async () => {
    const inside = {
      deny: [{ match: 'Write', input: `!within(input.file_path, "${place.cwd}/free")`, message: 'Not there.' }],
    }
    const { gate, audit } = createWorld({ policy: [READERS, inside] })
    const calls = [write('denied', 'a'), write('free/allowed', 'b')]
    const { told } = await place.run([calls], { ...BYPASS, ...(await guard(gate, VIEWER)) })
    assert.equal(told.get('a'), 'PreToolUse:Write hook error: TOOL_CALL_BLOCKED: Not there.')
    assert.ok(!place.wrote('denied'))
    assert.ok(place.wrote('free/allowed'))
    assert.deepEqual(audit.attempts().toSorted(), [
      'Write tool_blocked input_denied',
      'Write tool_call',
      'Write tool_result',
    ])
    await place.run([[write('denied')]], BYPASS)
    assert.ok(place.wrote('denied'), 'which it would have, without the gate')
  })

  it('keeps a limit exactly, however many calls are made at once', async () => {
    const { gate, audit } = createWorld({ limits: 'Write:2/60' })
    const calls = ['l1', 'l2', 'l3', 'l4'].map((file) => write(file, file))
    const { told } = await place.run([calls], { ...BYPASS, ...(await guard(gate, VIEWER)) })
    const limited = [...told.values()].filter((text) => text.includes('TOOL_CALL_BLOCKED: rate limited (2/60).'))
    assert.equal(limited.length, 2)
    assert.equal(['l1', 'l2', 'l3', 'l4'].filter((file) => place.wrote(file)).length, 2)
    assert.equal(audit.attempts().filter((attempt) => attempt.endsWith('rate_limited')).length, 2)
  })

  it("runs the input that a hook of the gate puts in place of the model's", async () => {
    const beforeToolCall = () => ({ input: { file_path: path.join(place.cwd, 'instead'), content: 'y' } })
    const { gate, audit } = createWorld({ hooks: { beforeToolCall } })
    await place.run([[write('asked')]], { ...BYPASS, ...(await guard(gate, VIEWER)) })
    assert.ok(place.wrote('instead'))
    assert.ok(!place.wrote('asked'))
    assert.deepEqual(audit.attempts(), ['Write tool_call', 'Write tool_result'])
  })

  it('blocks the call where the gate itself fails', async () => {
    const { gate } = createWorld()
    const view = await gate.view(VIEWER)
    const call = () => Promise.reject(new Error('broken'))
    const broken = new Proxy({} as View, { get: (_, key) => (key === 'call' ? call : Reflect.get(view, key)) })
    const options = await guard({ ...gate, view: async () => broken }, VIEWER)
    const { told } = await place.run([[write('unasked-of')]], { ...BYPASS, ...options })
    assert.match(told.get('toolu_1') ?? '', /blocking because onFailure is "block"/)
    assert.ok(!place.wrote('unasked-of'))
  })

  it('records what the harness did not run though the gate let it', async () => {
    const { gate, audit } = createWorld()
    const { told } = await place.run([[write('unasked')]], await guard(gate, VIEWER))
    assert.match(told.get('toolu_1') ?? '', /requested permissions/)
    assert.ok(!place.wrote('unasked'))
    assert.deepEqual(audit.attempts(), ['Write tool_call', 'Write tool_abandoned tool_aborted'])
    assert.match(audit.records.at(-1)?.error ?? '', /^Claude Code did not run it: /)
  })

  it('decides what a subagent calls', async () => {
    const audit = createTestAudit()
    const policy = { deny: [{ match: 'Write', message: 'Not for agents.', input: 'true' }] } as const
    const gate = createGate({ tools: fromClaudeAgent(['Agent', 'Write']), policy, audit })
    gates.push(gate)
    const agents = { worker: { description: 'Works.', prompt: 'You work.', tools: ['Write', 'Bash'] } }
    const start = use('Agent', { description: 'x', prompt: 'Subagent, go.', subagent_type: 'worker' }, 'start')
    const { requests } = await place.run(
      ({ text, messages }) => {
        if (!JSON.stringify(messages[0]).includes('Subagent, go.'))
          return messages.length === 1 ? [start] : [{ type: 'text', text: 'Done.' }]
        return text.includes('"within"') ? [{ type: 'text', text: 'Done.' }] : [write('by-agent', 'within')]
      },
      { ...BYPASS, agents, ...(await guard(gate, VIEWER)) },
    )
    const ofAgent = requests.filter(({ messages }) => JSON.stringify(messages[0]).includes('Subagent, go.'))
    assert.deepEqual(ofAgent[0]?.tools, ['Write'])
    assert.ok(ofAgent.at(-1)?.text.includes('TOOL_CALL_BLOCKED: Not for agents.'))
    assert.ok(!place.wrote('by-agent'))
    assert.deepEqual(audit.attempts().toSorted(), [
      'Agent tool_call',
      'Agent tool_result',
      'Write tool_blocked input_denied',
    ])
  })

  it('stops the query where a person halts what it runs', async () => {
    const { gate, audit } = createWorld()
    const halting = place.run([[bash(LONG)]], { ...BYPASS, ...(await guard(gate, ADMIN)) })
    await until(() => audit.attempts().includes('Bash tool_call'), halting)
    await gate.halt({ user: 'ada', reason: 'enough' })
    const { error } = await halting
    assert.ok(error instanceof Error)
    assert.deepEqual(audit.attempts(), ['Bash tool_call', 'Bash tool_abandoned halted'])
  })

  it('records what was running when the query was given up', async () => {
    const { gate, audit } = createWorld()
    const abortController = new AbortController()
    const running = place.run([[bash(LONG)]], { ...BYPASS, ...(await guard(gate, ADMIN, { abortController })) })
    await until(() => audit.attempts().includes('Bash tool_call'), running)
    abortController.abort()
    await running
    await gate.close()
    assert.deepEqual(audit.attempts(), ['Bash tool_call', 'Bash tool_abandoned tool_aborted'])
  })

  it('stops the query where its hooks were taken away', async () => {
    const { gate, audit } = createWorld()
    const options = await guard(gate, VIEWER)
    const hooks = { ...options.hooks, PreToolUse: [] }
    const { error } = await place.run([[write('unhooked')], [write('never', 'b')]], { ...BYPASS, ...options, hooks })
    assert.ok(error instanceof Error)
    assert.ok(!place.wrote('never'))
    assert.deepEqual(audit.attempts(), ['Write tool_blocked hook_denied'])
    assert.match(audit.records.at(-1)?.detail ?? '', /without the gate's permission/)
  })

  it('takes no tool for another whose name can be read the same way', async () => {
    const ran: string[] = []
    const execute = async () => {
      ran.push('c')
      return { content: [] }
    }
    // What was brought in is the tool `b__c` of the server `a`; what there is is the tool `c` of the server `a__b`.
    const audit = createTestAudit()
    const gate = createGate({ tools: fromClaudeAgent(['mcp__a__b__c']), audit })
    gates.push(gate)
    const mcpServers = { a__b: createSdkMcpServer({ name: 'a__b', tools: [tool('c', 'c', {}, execute)] }) }
    const { told } = await place.run([[use('mcp__a__b__c')]], {
      ...BYPASS,
      ...(await guard(gate, VIEWER, { mcpServers })),
    })
    assert.match(told.get('toolu_1') ?? '', /Tool "mcp__a__b__c" is not available/)
    assert.deepEqual(ran, [])
    assert.deepEqual(audit.attempts(), ['mcp__a__b__c tool_blocked tool_not_found'])
  })

  it('records and stops a query in which settings of the folder put in another input than was decided', async () => {
    const own = createPlace()
    try {
      const other = { file_path: path.join(own.cwd, 'other'), content: 'x' }
      const output = { hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput: other } }
      own.write('.claude/output.json', JSON.stringify(output))
      // It answers last, and the last answer holds.
      const command = `sleep 0.5; cat ${own.cwd}/.claude/output.json`
      const hooks = { PreToolUse: [{ matcher: 'Write', hooks: [{ type: 'command', command }] }] }
      own.write('.claude/settings.json', JSON.stringify({ disableAllHooks: false, hooks }))
      const { gate, audit } = createWorld()
      const { error } = await own.run([[write('decided')], [write('never', 'b')]], {
        ...BYPASS,
        settingSources: ['project'],
        ...(await guard(gate, VIEWER)),
      })
      assert.ok(error instanceof Error)
      assert.ok(own.wrote('other') && !own.wrote('never') && !place.wrote('never'))
      assert.deepEqual(audit.attempts(), ['Write tool_call', 'Write tool_result tool_failed'])
      assert.equal(audit.records.at(-1)?.error, 'Claude Code ran it with another input than this')
    } finally {
      own.close()
    }
  })

  it('is not switched off by settings that switch hooks off', async () => {
    const own = createPlace()
    try {
      own.write('.claude/settings.json', JSON.stringify({ disableAllHooks: true, allowManagedHooksOnly: true }))
      const { gate } = createWorld({ policy: { deny: [{ match: 'Write', input: 'true', message: 'No.' }] } })
      const { told } = await own.run([[write('off')]], {
        ...BYPASS,
        settingSources: ['project'],
        ...(await guard(gate, VIEWER)),
      })
      assert.equal(told.get('toolu_1'), 'PreToolUse:Write hook error: TOOL_CALL_BLOCKED: No.')
      assert.ok(!place.wrote('off'))
    } finally {
      own.close()
    }
  })

  it('stops the query where the harness takes longer than it may', async () => {
    const { gate, audit } = createWorld()
    const options = await guard(gate, ADMIN, { harnessDeadlineMs: 500 })
    const { error } = await place.run([[bash(LONG)]], { ...BYPASS, ...options })
    assert.ok(error instanceof Error)
    assert.deepEqual(audit.attempts(), ['Bash tool_call', 'Bash tool_result tool_timeout'])
  })

  it('governs the tools of other MCP servers, and hides servers of which nothing is visible', async () => {
    const ran: string[] = []
    const serve = (name: string, tools: string[]) =>
      createSdkMcpServer({
        name,
        tools: tools.map((each) =>
          tool(each, each, {}, async () => {
            ran.push(`${name} ${each}`)
            return { content: [{ type: 'text', text: each }] }
          }),
        ),
      })
    const audit = createTestAudit()
    const known = ['mcp__git__read_log', 'mcp__git__push', 'mcp__mail__send'] as const
    const policy = { deny: ['git:push', 'mail:*'] } as const
    const gate = createGate({ tools: fromClaudeAgent(known), policy, audit })
    gates.push(gate)
    const mcpServers = { git: serve('git', ['read_log', 'push', 'new_tool']), mail: serve('mail', ['send', 'list']) }
    const names = ['mcp__git__read_log', 'mcp__git__push', 'mcp__git__new_tool', 'mcp__mail__send', 'mcp__mail__list']
    const calls = names.map((name) => use(name, {}, name))
    const { requests, told } = await place.run([calls], { ...BYPASS, ...(await guard(gate, VIEWER, { mcpServers })) })
    assert.deepEqual(requests[0]?.tools, ['mcp__git__new_tool', 'mcp__git__read_log'])
    assert.deepEqual(ran, ['git read_log'])
    assert.equal(
      told.get('mcp__git__new_tool'),
      'PreToolUse:mcp__git__new_tool hook error: Tool "mcp__git__new_tool" is not available. Available tools: mcp__git__read_log.',
    )
    assert.deepEqual(audit.attempts().toSorted(), [
      'git:push tool_blocked policy_denied',
      'git:read_log tool_call',
      'git:read_log tool_result',
      'mail:send tool_blocked policy_denied',
      'mcp__git__new_tool tool_blocked tool_not_found',
      'mcp__mail__list tool_blocked tool_not_found',
    ])
  })
})

/** Longer than any of this takes, and not for ever. */
const LONG = 'for i in $(seq 200); do sleep 0.1; done'

async function until(holds: () => boolean, running: Promise<Ran>): Promise<void> {
  let isOver = false
  void running.finally(() => (isOver = true))
  while (!holds()) {
    assert.ok(!isOver, 'the query was over before')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
