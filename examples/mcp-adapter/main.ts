// An MCP server, and one line that puts a gate around its tools: each caller sees its own list, and a refund waits for
// a person. Then the other side: an agent that uses that server through a gate of its own.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, fromJsonSchema, McpServer, Server } from '@modelcontextprotocol/server'
import { fromMcpClient, fromMcpServer, guard } from '@toolgate/adapters/mcp'
import { type Caller, createGate, memoryAudit } from '@toolgate/core'

// An existing server of the SDK, with tools.
const shop = new McpServer({ name: 'shop', version: '1.0.0' })
const say = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const order = fromJsonSchema<{ id: string }>({ type: 'object', properties: { id: { type: 'string' } } })
shop.registerTool('find_order', { inputSchema: order, annotations: { readOnlyHint: true } }, ({ id }) =>
  say(`order ${id}: 2 hinges`),
)
shop.registerTool('refund', { inputSchema: order }, ({ id }) => say(`refunded ${id}`))
shop.registerTool('drop_table', { description: 'For maintenance.' }, () => say('gone'))

const audit = memoryAudit()
const gate = createGate({
  sources: [await fromMcpServer(shop, { overlay: { refund: { tags: ['money'] }, 'drop_*': { tags: ['danger'] } } })],
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['tag:money'] },
  audit,
})
const handler = createMcpHandler(
  // This line.
  guard(gate, {
    server: () => new Server({ name: 'shop', version: '1.0.0' }),
    caller: ({ authInfo }) => authInfo?.extra as Caller,
  }),
)

/** A client of this user. In production your host validates the token; here nothing goes over the network. */
async function connect(caller: Caller): Promise<Client> {
  const authInfo = { token: 'token', clientId: 'desk', scopes: [], extra: { ...caller } }
  const client = new Client({ name: 'desk', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  const transport = new StreamableHTTPClientTransport(new URL('http://shop.test/mcp'), {
    fetch: (url, init) => handler.fetch(new Request(url, init), { authInfo }),
  })
  await client.connect(transport)
  return client
}

async function show(who: string, client: Client, name: string, args: Record<string, unknown> = {}): Promise<void> {
  const { content } = await client.callTool({ name, arguments: args })
  console.log(`  ${who} ${name}: ${content.map((block) => (block.type === 'text' ? block.text : '')).join()}`)
}

const [vera, ada] = [
  await connect({ user: 'vera', roles: ['clerk'] }),
  await connect({ user: 'ada', roles: ['admin'] }),
]
console.log('What each sees')
for (const [who, client] of [
  ['vera', vera],
  ['ada', ada],
] as const)
  console.log(`  ${who}: ${(await client.listTools()).tools.map(({ name }) => name).join(', ')}`)

console.log('What runs')
await show('vera', vera, 'find_order', { id: 'A1' })
await show('vera', vera, 'drop_table')
await show('vera', vera, 'refund', { id: 'A1' })

console.log('A person approves; it runs once')
const [waiting] = await gate.approvals.list({ status: 'pending' })
await gate.approvals.decide({ user: 'omar', roles: ['approver'] }, waiting?.id ?? '', { decision: 'approve' })
await show('vera', vera, 'refund', { id: 'A1' })
await show('vera', vera, 'refund', { id: 'A1' })

console.log('The agent’s own gate, around that server')
const source = await fromMcpClient(ada, { namespace: 'shop' })
const view = await createGate({ sources: [source], policy: { allow: ['shop:find_*'] } }).view({ user: 'ada' })
for (const tool of ['shop:find_order', 'shop:refund']) {
  const { status, text } = await view.call({ tool, input: { id: 'B2' } })
  console.log(`  ${tool} ${status}: ${text}`)
}

console.log('On record at the server')
for (const { event, tool, user_id: user, reason } of audit.records)
  if (event !== 'tool_call')
    console.log(`  ${event} ${user ?? '-'} ${tool ?? '-'}${reason === undefined ? '' : ` (${reason})`}`)

await Promise.all([vera.close(), ada.close(), handler.close(), shop.close()])
