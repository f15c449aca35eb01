import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig, startGateway } from '@toolgate/gateway'
import { digits, printTable } from './lib.ts'
import { longestStall } from './stall.ts'

/**
 * How long a question about a change holds up calls: the longest delay of the gateway's event loop while it is answered, for a text
 * near the bound of a megabyte and 200,000 YAML tokens.
 */
const [TOOLS, CALLERS, CALLS, CLAUSES, ROUNDS] = [200, 50, 1000, 6000, 1]
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const tools = Array.from({ length: ${TOOLS} }, (_, i) => ({ name: 'tool_' + i, inputSchema: { type: 'object', properties: { a: { type: 'string' } } } }))
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'many', version: '1' } } })
  else if (id !== undefined) send({ id, result: method === 'tools/list' ? { tools } : { content: [{ type: 'text', text: 'ok' }] } })
})`

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const file = join(folder, 'toolgate.yaml')
const textOf = (clauses: readonly string[]) => `
servers:
  many: { command: ${JSON.stringify(process.execPath)}, args: ["-e", ${JSON.stringify(SERVER)}], per: shared }
callers:
  - { key: demo-console, for: console, user: owner, roles: [operator] }
${Array.from({ length: CALLERS }, (_, i) => `  - { key: "bench-key-${i}", user: user${i}, roles: [role${i % 5}] }`).join('\n')}
policy:
  - name: base
    allow: ["*"]
    deny:
${clauses.map((clause) => `      - ${clause}`).join('\n')}
listen: { port: 0 }
audit: { store: sqlite, path: ${JSON.stringify(join(folder, 'audit.db'))} }
state: { store: memory }
`
const clause = (i: number) =>
  `{ match: "many:tool_${i % TOOLS}*", when: "caller.user == 'user${i}'", input: "input.a != 'text number ${i}'" }`
const few = textOf([clause(1)])
const many = textOf(Array.from({ length: CLAUSES }, (_, i) => clause(i)))
const tests = `tests:\n${Array.from({ length: 3 }, (_, i) => `  - { shows: "${i}", caller: user${i % CALLERS}, expect: { call: { "many:tool_${i % TOOLS}": allow } } }`).join('\n')}\n`
writeFileSync(file, few)

const gateway = await startGateway(loadConfig(file))
await gateway.ready
for (let i = 0; i < CALLS; i++) {
  const view = await gateway.gate.view({ user: `user${i % CALLERS}`, roles: [`role${i % 5}`] })
  await view.call({ tool: `many:tool_${i % TOOLS}`, input: { a: `${i}` } })
}

async function ask(what: string, body: string): Promise<void> {
  const answer = await fetch(`${gateway.url}/api/${what}`, {
    method: 'POST',
    headers: { authorization: 'Bearer demo-console', 'content-type': 'application/json' },
    body,
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${what}: ${answer.status} ${text.slice(0, 500)}`)
}

const QUESTIONS = {
  'what-if': { config: many },
  compare: { config: many },
  test: { config: many, tests },
  suggest: {},
}
// The first question starts the thread.
await ask('test', JSON.stringify({ tests: 'tests: []' }))
const rows: string[][] = []
for (const [what, given] of Object.entries(QUESTIONS)) {
  const body = JSON.stringify(given)
  const start = performance.now()
  const { longestMs, longestCpuMs } = await longestStall(() => ask(what, body), ROUNDS)
  const meanMs = (performance.now() - start) / ROUNDS
  rows.push([`/api/${what}`, String(body.length), digits(longestMs), digits(longestCpuMs), digits(meanMs)])
}
printTable(
  `Questions about a change, with ${CLAUSES} clauses, ${TOOLS} tools, ${CALLERS} callers and ${CALLS} calls: the longest event-loop delay`,
  ['question', 'characters', 'ms', 'CPU ms', 'answer ms'],
  rows,
)
await gateway.close()
rmSync(folder, { recursive: true })
