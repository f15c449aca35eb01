import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ConfigError, createGate, UnknownToolError } from '@toolgate/core'
import { z } from 'zod'
import { fromClaudeAgent, guard, type GuardOptions } from './claude-agent.ts'
import { ADMIN, createTestAudit, VIEWER } from './testing/world.ts'

// What a query makes of it is tested in tests/claude-agent, with the SDK's own loop.

const lookUp = {
  name: 'look_up',
  description: 'Looks up.',
  inputSchema: { word: z.string(), times: z.number().default(2) },
  annotations: { readOnlyHint: true },
  handler: async () => ({ content: [] }),
}

async function connect({ instance }: { readonly instance: McpServer }): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair()
  // In JSON, as the harness is sent it.
  const send = far.send.bind(far)
  far.send = (message) => send(JSON.parse(JSON.stringify(message)) as typeof message)
  await instance.connect(far)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(near)
  return client
}

describe('fromClaudeAgent', () => {
  it('names built-ins by their name, and tools of other servers by server and name', () => {
    const tools = fromClaudeAgent(['Bash', 'mcp__github__create_issue', 'mcp__a__b__c'])
    assert.deepEqual(Object.keys(tools), ['Bash', 'github:create_issue', 'a:b__c'])
  })

  const WRONG = {
    'WebFetch(domain:x.org)': /patterns belong in the policy: import "WebFetch", and write \{ match: "WebFetch", input/,
    'bash(git:*)': /import "Bash", and write/,
    bash: /names no tool: did you mean "Bash"\?/,
    web_fetch: /did you mean "WebFetch"\?/,
    ' Bash': /did you mean "Bash"\?/,
    'mcp__github__*': /name each tool of an MCP server, such as "mcp__github__create_issue"\. .*fromMcpClient/,
    mcp__github: /name each tool of an MCP server/,
    mcp__github__: /name each tool of an MCP server/,
    'github:create_issue': /is a gate's id: import it as "mcp__github__create_issue"/,
    '*': /write one name for each tool, without patterns/,
    'Read,Write': /write one name for each tool/,
    '': /names no tool/,
  }
  for (const [name, message] of Object.entries(WRONG))
    it(`refuses ${JSON.stringify(name)}, which would never match a call, and says what to write`, () => {
      assert.throws(() => fromClaudeAgent(['Read', name]), { name: 'ConfigError', message })
    })

  it('warns once about a built-in that it does not know, and takes those of earlier releases', async () => {
    const warnings: string[] = []
    const listen = (warning: Error) => void warnings.push(warning.message)
    process.on('warning', listen)
    for (const name of ['Reed', 'Reed', 'Task', 'MultiEdit', 'propose_skills', 'Brandnew']) fromClaudeAgent([name])
    await new Promise(setImmediate)
    process.off('warning', listen)
    assert.deepEqual(warnings, [
      'fromClaudeAgent: "Reed" is no built-in tool of Claude Code that Toolgate knows; did you mean "Read"?',
      'fromClaudeAgent: "Brandnew" is no built-in tool of Claude Code that Toolgate knows',
    ])
  })

  it('refuses anything but a list of names and tools', () => {
    const preset = { type: 'preset', preset: 'claude_code' }
    assert.throws(() => fromClaudeAgent(preset as never), /tools: must be a list of .* no preset/)
    assert.throws(() => fromClaudeAgent([preset] as never), /what tool\(\) returned/)
  })

  it('knows which built-ins change nothing; of the others it says nothing', () => {
    const gate = createGate({ tools: fromClaudeAgent(['Read', 'WebFetch', 'Write']) })
    const hints = gate.catalog.snapshot().tools.map(({ id, annotations }) => [id, annotations.readOnlyHint])
    assert.deepEqual(hints, [
      ['Read', true],
      ['WebFetch', true],
      ['Write', undefined],
    ])
  })

  it('accepts the result of tool(), with one schema for its fields', () => {
    const gate = createGate({ tools: fromClaudeAgent([lookUp]) })
    const tool = gate.catalog.get('look_up')
    assert.deepEqual(tool?.inputSchema['required'], ['word'])
    assert.deepEqual(tool?.parseInput?.({ word: 'a', other: 1 }), { value: { word: 'a', times: 2 } })
    assert.equal(tool?.annotations.readOnlyHint, true)
  })

  it('gives tool() what JSON cannot express, and decides what the model wrote', async () => {
    const seen: unknown[] = []
    const book = {
      name: 'book',
      description: 'Books.',
      inputSchema: { at: z.string().transform((text) => new Date(text)) },
      handler: async (input: unknown) => {
        seen.push(input)
        return { content: [] }
      },
    }
    const deny = [{ match: 'book', input: "input.at == '2026-01-02'" }]
    const gate = createGate({ tools: fromClaudeAgent([book]), policy: { deny } as object })
    const { mcpServers } = await guard(gate, VIEWER)
    const client = await connect(mcpServers['gate'] as never)
    for (const at of ['2026-01-01', '2026-01-02']) await client.callTool({ name: 'book', arguments: { at } })
    assert.deepEqual(seen, [{ at: new Date('2026-01-01') }])
    await client.close()
  })

  it('combines them with tags, scopes and groups, and refuses unknown names and invalid tools', () => {
    const overlay = { Bash: { tags: ['danger'], requiredScopes: ['shell'] } }
    const gate = createGate({ tools: fromClaudeAgent(['Bash'], overlay) })
    assert.deepEqual(gate.catalog.get('Bash')?.tags, ['danger'])
    assert.deepEqual(gate.catalog.get('Bash')?.requiredScopes, ['shell'])
    assert.throws(() => fromClaudeAgent(['Bash'] as string[], { Bsah: {} }), /unknown tool; did you mean "Bash"/)
    assert.throws(() => fromClaudeAgent(['Bash', 'Bash']), /tool "Bash": is imported twice/)
    const wrong = { ...lookUp, inputSchema: { type: 'object' } }
    assert.throws(() => fromClaudeAgent([wrong]), ConfigError)
  })

  it('runs nothing outside a query of the harness', async () => {
    const audit = createTestAudit()
    const gate = createGate({ tools: fromClaudeAgent(['Bash']), audit })
    const outcome = await (await gate.view(VIEWER)).call({ tool: 'Bash', input: { command: 'ls' } })
    assert.equal(outcome.text, 'Bash failed: Claude Code runs it, so only its query can call it')
    assert.deepEqual(audit.attempts(), ['Bash tool_call', 'Bash tool_result tool_failed'])
  })
})

describe("guard of the Claude Agent SDK, the gate's own server", () => {
  it('answers whatever a tool returns', async () => {
    const outputs: Readonly<Record<string, () => unknown>> = {
      big: () => ({ rows: 7n }),
      block: () => ({ content: [{ type: 'text', text: 'rows', rows: 7n }] }),
      rich: () => ({ content: [{ type: 'paragraph' }] }),
      async *stream() {
        yield { rows: 7n }
      },
      async *torn() {
        yield 'one'
        throw new Error('no disk')
      },
    }
    const tools = Object.fromEntries(Object.entries(outputs).map(([name, execute]) => [name, { execute }]))
    const { mcpServers } = await guard(createGate({ tools }), VIEWER)
    const client = await connect(mcpServers['gate'] as { readonly instance: McpServer })
    const told = async (name: string) => (await client.callTool({ name })) as object
    const text = (said: string) => ({ content: [{ type: 'text', text: said }] })
    assert.deepEqual(await told('big'), text('{"rows":7}'))
    assert.deepEqual(await told('block'), text('rows'))
    assert.deepEqual(await told('rich'), text('{"content":[{"type":"paragraph"}]}'))
    assert.deepEqual(await told('stream'), text('{"rows":7}'))
    assert.deepEqual(await told('torn'), { ...text('mcp__gate__torn failed: no disk'), isError: true })
    await client.close()
  })
})

describe('guard of the Claude Agent SDK, its options', () => {
  const gate = createGate({
    tools: {
      ...fromClaudeAgent(['Bash', 'Read', 'mcp__git__log', 'mcp__git__push', 'mcp__mail__send']),
      search: { execute: () => 'found' },
      wipe: { execute: () => 'wiped' },
    },
    policy: { deny: [{ match: ['Bash', 'git:push', 'mail:send', 'wipe'], unless: "'admin' in caller.roles" }] },
  })

  it('lists the visible tools, and those that the model must not see', async () => {
    const mcpServers = { git: { command: 'git-mcp' }, mail: { command: 'mail-mcp' } }
    const given = await guard(gate, VIEWER, { mcpServers, disallowedTools: ['Skill'], allowedTools: ['Read'] })
    assert.deepEqual(given.tools, ['Read'])
    assert.deepEqual(given.disallowedTools, ['Skill', 'Bash', 'mcp__git__push', 'mcp__mail__send', 'mcp__mail'])
    assert.deepEqual(given.allowedTools, ['Read', 'mcp__gate__search'])
    assert.deepEqual(Object.keys(given.mcpServers), ['git', 'mail', 'gate'])
    assert.deepEqual((await guard(gate, ADMIN)).tools, ['Bash', 'Read'])
  })

  it('offers no request_tools, as its tools are settled, and names it in no refusal', async () => {
    const locking = createGate({
      tools: { search: { execute: () => 'found' }, wipe: { execute: () => 'wiped' } },
      groups: { danger: { tools: ['wipe'], unlock: 'request' } },
    })
    const caller = { ...VIEWER, session: 's1' }
    const { allowedTools, mcpServers } = await guard(locking, caller)
    assert.deepEqual(allowedTools, ['mcp__gate__search'])
    const client = await connect(mcpServers['gate'] as { readonly instance: McpServer })
    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['search'],
    )
    const refused = { content: [{ type: 'text', text: 'mcp__gate__wipe is locked.' }], isError: true }
    assert.deepEqual(await client.callTool({ name: 'wipe', arguments: {} }), refused)
    await client.close()
    locking.locks.request(caller, 'danger')
    assert.deepEqual((await guard(locking, caller)).allowedTools, ['mcp__gate__search', 'mcp__gate__wipe'])
  })

  it('leaves it to the harness if the user wants to be asked', async () => {
    const { allowedTools } = await guard(gate, VIEWER, { canUseTool: async () => null })
    assert.deepEqual(allowedTools, [])
  })

  it('blocks where its hooks fail, and has the harness know of them before anything runs', async () => {
    const { hooks, extraArgs } = await guard(gate, VIEWER, { extraArgs: { verbose: null } })
    for (const event of ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'PostToolBatch']) {
      const [matcher] = hooks[event] ?? []
      assert.equal(matcher?.onFailure, 'block')
      assert.equal(matcher?.matcher, undefined)
    }
    assert.deepEqual(extraArgs, { verbose: null, 'await-initialize': null })
  })

  it('leaves the gate’s own tools to its server, and asks the gate about names with the same beginning', async () => {
    const { hooks } = await guard(gate, VIEWER)
    const ask = hooks['PreToolUse']?.[0]?.hooks[0]
    const answerTo = async (name: string, server?: object): Promise<unknown> => {
      const input = { session_id: 's', tool_name: name, tool_input: {}, tool_use_id: name, mcp_server: server }
      return ask?.(input, name, { signal: new AbortController().signal })
    }
    const own = { name: 'gate', source: 'sdk' }
    assert.deepEqual(await answerTo('mcp__gate__search'), {})
    assert.deepEqual(await answerTo('mcp__gate__search', own), {})
    for (const [name, server] of [
      ['mcp__gate___x', undefined],
      ['mcp__gate___x', { name: 'gate_', source: 'project' }],
      ['mcp__gate__search', { name: 'gate', source: 'project' }],
    ] as const)
      assert.match(JSON.stringify(await answerTo(name, server)), /"permissionDecision":"deny"/)
  })

  it('names invalid options', async () => {
    const wrong = async (options: GuardOptions, error: RegExp) =>
      assert.rejects(guard(gate as never, VIEWER, options), (thrown: Error) => {
        assert.ok(thrown instanceof ConfigError || thrown instanceof UnknownToolError)
        assert.match(thrown.message, error)
        return true
      })
    await wrong({ activeTools: ['serach'] }, /serach.*search/)
    await wrong({ tools: ['Edit'] }, /tools\.Edit: is not in the gate: import it with fromClaudeAgent/)
    await wrong({ tools: ['bash'] }, /tools\.bash: is not in the gate: .* did you mean "Bash"\?/)
    await wrong(
      { disallowedTools: ['Bash', 'write'] },
      /disallowedTools\[1\]: "write" names no tool: did you mean "Write"\?/,
    )
    await wrong({ allowedTools: ['bash(git:*)'] }, /allowedTools\[0\]: .* did you mean "Bash"\?/)
    await wrong({ mcpServers: { other: {} } }, /mcpServers\.other: the gate knows none of its tools/)
    await wrong({ mcpServers: { gate: {} } }, /mcpServers\.gate: has the name of the gate's own server/)
    await wrong({ serverName: 'my gate' }, /serverName: must be 1 to 40 of/)
    await wrong({ waiting: 'ask' as never }, /waiting: must be "tell" or "defer"/)
    await wrong({ harnessDeadlineMs: Number.NaN }, /harnessDeadlineMs: must be a positive number/)
    await wrong({ serverName: 'git' }, /serverName: "git" is the name of another server, which has the tool "git:log"/)
  })
})
