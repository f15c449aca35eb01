import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Agent, computerTool, handoff, hostedMcpTool, shellTool, tool, toolNamespace } from '@openai/agents'
import { ConfigError, createGate } from '@toolgate/core'
import { fromOpenAIAgents, type Governable } from '../openai-agents.ts'
import { createTools, NO_INPUT } from '../testing/openai-agents-scene.ts'
import { createWitness, VIEWER } from '../testing/world.ts'

const { search, delete_all } = createTools(createWitness())

describe('fromOpenAIAgents', () => {
  it('gives tools by their names, with the overlay of each', () => {
    const gate = createGate({ tools: fromOpenAIAgents([search, delete_all], { delete_all: { tags: ['danger'] } }) })
    const [first, second] = gate.catalog.snapshot().tools
    assert.deepEqual([first?.id, first?.tags, first?.description], ['delete_all', ['danger'], 'It is delete_all.'])
    assert.deepEqual([second?.id, second?.tags, second?.inputSchema], ['search', [], NO_INPUT])
  })

  it('takes them by their ids, so that the compiler knows them', () => {
    const gate = createGate({ tools: fromOpenAIAgents({ search, delete_all }) })
    assert.deepEqual(gate.catalog.snapshot().ids, ['delete_all', 'search'])
    assert.throws(() => fromOpenAIAgents({ find: search }), isConfigError(/tools\.find.*the tool's name is "search"/))
  })

  it('names tools of a namespace after it', () => {
    const tools = fromOpenAIAgents(toolNamespace({ name: 'crm', description: 'CRM', tools: [search] }))
    assert.deepEqual(createGate({ tools }).catalog.snapshot().ids, ['crm:search'])
  })

  it('takes agents as tools, and handoffs', () => {
    const helper = new Agent({ name: 'Helper', handoffDescription: 'Helps.' })
    const tools = fromOpenAIAgents([helper.asTool({ toolName: 'helper', toolDescription: 'x' }), handoff(helper)])
    assert.deepEqual(createGate({ tools }).catalog.snapshot().ids, ['helper', 'transfer_to_Helper'])
  })

  it('refuses two tools of one name', () => {
    assert.throws(() => fromOpenAIAgents([search, search]), isConfigError(/two tools of this name/))
  })

  it('refuses an overlay for a tool that is none', () => {
    assert.throws(
      () => fromOpenAIAgents([search], { serach: {} }),
      isConfigError(/unknown tool; did you mean "search"/),
    )
  })

  it('refuses tools that run elsewhere, and says what to do about them', () => {
    const elsewhere: readonly unknown[] = [
      { type: 'hosted_tool', name: 'web_search', providerData: { type: 'web_search' } },
      hostedMcpTool({ serverLabel: 'wiki', serverUrl: 'https://wiki.example/mcp' }),
      shellTool({ shell: { run: () => Promise.reject(new Error('none')) } }),
      computerTool({ computer: () => Promise.reject(new Error('none')) }),
      undefined,
    ]
    for (const one of elsewhere)
      assert.throws(() => fromOpenAIAgents([one as Governable]), isConfigError(/not a function tool.*`ungoverned`/))
  })

  it('gives tools that run through the gate without the SDK too', async () => {
    const ran: unknown[] = []
    const read = tool({
      name: 'read',
      description: 'x',
      parameters: { ...NO_INPUT, properties: { path: { type: 'string' } }, required: ['path'] },
      execute: (input, context) => {
        ran.push(input, context?.context)
        return 'text'
      },
    })
    const view = await createGate({ tools: fromOpenAIAgents([read]) }).view(VIEWER)
    const outcome = await view.call({ tool: 'read', input: { path: 'a' } })
    assert.deepEqual([outcome.status, outcome.text], ['done', 'text'])
    assert.deepEqual(ran, [{ path: 'a' }, {}])
  })

  it('gives handoffs that need a run of the SDK', async () => {
    const view = await createGate({ tools: fromOpenAIAgents([handoff(new Agent({ name: 'B' }))]) }).view(VIEWER)
    assert.equal((await view.call({ tool: 'transfer_to_B' })).status, 'failed')
  })
})

function isConfigError(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof ConfigError && message.test(error.message)
}
