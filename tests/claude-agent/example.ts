// An agent with a shell and files, whose people are not all trusted with both.
//
// What runs is the real harness of the Claude Agent SDK; only the model behind it is a script, so that every run is the
// same. Leave `env` out, and it is a model of yours.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Options, query } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent, guard } from '@toolgate/adapters/claude-agent'
import { type Caller, createGate, defineTool, memoryAudit } from '@toolgate/core'
import { createPlace, use } from './support/query.ts'
import { serveMessages } from './support/messages-api.ts'

const place = createPlace()
const audit = memoryAudit()
const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks a customer up.',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  execute: ({ name }: { name: string }) => `${name} lives in Bergen`,
})

const gate = createGate({
  tools: { ...fromClaudeAgent(['Bash', 'Read', 'Write'], { Bash: { tags: ['shell'] } }), look_up: lookUp },
  policy: {
    deny: [
      { match: 'tag:shell', unless: "'operator' in caller.roles" },
      { match: 'Write', input: `!within(input.file_path, '${place.cwd}/notes')`, message: 'Only below notes/.' },
    ],
  },
  limits: 'Write:1/60',
  audit,
})

const write = (file: string) => ({ file_path: path.join(place.cwd, file), content: 'Bergen' })
/** What the model tries, one after the other, whoever asks. */
const TRIES = [
  use('mcp__gate__look_up', { name: 'Ola' }, 'look_up'),
  use('Bash', { command: 'echo hello' }, 'Bash'),
  use('Write', write('elsewhere.txt'), 'Write elsewhere'),
  use('Write', write('notes/a.txt'), 'Write a note'),
  use('Write', write('notes/b.txt'), 'Write another'),
]
const model = await serveMessages(({ text }) => {
  const next = TRIES[text.split('"type":"tool_result"').length - 1]
  return [next ?? { type: 'text', text: 'Done.' }]
})

async function ask(caller: Caller): Promise<void> {
  console.log(`\n${caller.user} asks`)
  const env = { ...place.env, ANTHROPIC_BASE_URL: model.url }
  const options: Options = { cwd: place.cwd, env, settingSources: [], permissionMode: 'acceptEdits' }
  const guarded = { ...options, ...(await guard(gate, caller)) }
  for await (const message of query({ prompt: 'Where does Ola live?', options: guarded })) {
    if (message.type === 'system' && message.subtype === 'init') console.log(`  sees ${message.tools.join(', ')}`)
    if (message.type === 'user') console.log(`  told ${told(message.message.content)}`)
  }
}

function told(content: unknown): string {
  const [block] = content as { tool_use_id: string; content: string | { text: string }[] }[]
  const said = typeof block?.content === 'string' ? block.content : (block?.content[0]?.text ?? '')
  return `${block?.tool_use_id}: ${said.replaceAll(place.cwd, '.').replace(/in \d+ s/, 'in a minute')}`
}

await ask({ user: 'vera', roles: ['viewer'] })
await ask({ user: 'otto', roles: ['operator'] })

console.log('\nThe audit has')
for (const { user_id, tool, event, reason } of audit.records)
  if (event !== 'tool_call') console.log(`  ${[user_id, tool, event, reason].filter(Boolean).join(' ')}`)
console.log(`\nelsewhere.txt was ${existsSync(path.join(place.cwd, 'elsewhere.txt')) ? '' : 'not '}written`)

await model.close()
await gate.close()
place.close()
