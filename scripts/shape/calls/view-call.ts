import { createGate, defineTool } from '@toolgate/core'
import { record } from './record.ts'

const search = defineTool({
  name: 'search',
  inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  execute: ({ q }) => `results for ${q}`,
})
const gate = createGate({
  tools: { search },
  policy: { deny: [{ match: 'search', input: "input.q == 'secret'" }] },
  limits: 'search:1000000/60',
})
const caller = { user: 'vera', roles: ['viewer'] }
await record(async () => (await gate.view(caller)).call({ tool: 'search', input: { q: 'gates' } }))
