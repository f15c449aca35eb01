import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type GatewayConfig, startGateway } from '@toolgate/gateway'
import { callerConfig } from '../tests/support/keys.ts'
import { nodeServer } from '../tests/support/servers.ts'
import { median } from './lib.ts'

/** A reload that changes one clause of many: how long it takes, and how long it holds up everybody else. */
const [TOOLS, CALLERS, CLAUSES, RELOADS] = [1000, 100, 100, 15]
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const tools = Array.from({ length: ${TOOLS} }, (_, i) => ({ name: 'tool_' + i, inputSchema: { type: 'object', properties: { a: { type: 'string' } } } }))
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'many', version: '1' } } })
  else if (id !== undefined) send({ id, result: method === 'tools/list' ? { tools } : {} })
})`

const clausesOf = (odd: string, condition: (i: number) => string) =>
  Array.from({ length: CLAUSES }, (_, i) => ({ match: i === 0 ? odd : `many:tool_${i}*`, when: condition(i) }))

const CASES = [
  ['by roles', (i: number) => `'role${i % 5}' in caller.roles`],
  ['by users', (i: number) => `caller.user == 'user${i}'`],
] as const

for (const [name, condition] of CASES) {
  let reloads = 0
  const configOf = (): GatewayConfig => ({
    file: '/bench/toolgate.yaml',
    listen: { host: '127.0.0.1', port: 0 },
    servers: [nodeServer('many', ['-e', SERVER], { per: 'shared' })],
    callers: Array.from({ length: CALLERS }, (_, i) =>
      callerConfig(`bench-key-${i}`, { user: `user${i}`, roles: [`role${i % 5}`] }),
    ),
    groups: [],
    policy: [{ allow: ['*'], deny: clausesOf(`many:tool_${100 + reloads}`, condition) }],
    limits: [],
    audit: { store: 'memory', mode: 'batched' },
    state: { store: 'memory' },
  })
  const gateway = await startGateway(configOf(), { read: configOf })
  await gateway.ready
  const times: number[] = []
  const applied: number[] = []
  const delays: number[] = []
  for (; reloads <= RELOADS; reloads++) {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const start = performance.now()
    const before = gateway.gate.policyRevision
    let isWatching = true
    const watch = () => {
      if (gateway.gate.policyRevision !== before) applied.push(performance.now() - start)
      else if (isWatching) setImmediate(watch)
    }
    watch()
    const { isApplied } = await gateway.reload()
    isWatching = false
    times.push(performance.now() - start)
    // The timer of the histogram fires once more.
    await new Promise((resolve) => setTimeout(resolve, 5))
    delay.disable()
    delays.push(delay.max / 1e6)
    if (reloads > 0 && !isApplied) throw new Error('nothing was reloaded')
  }
  await gateway.close()
  const show = (values: readonly number[]) =>
    `${median(values.slice(2)).toFixed(1)} ms (at most ${Math.max(...values.slice(2)).toFixed(1)})`
  console.log(
    `${TOOLS} tools, ${CALLERS} callers, ${CLAUSES} clauses ${name}: the new rules are in force after ${show(applied)}, and the answer ` +
      `says who gains by them after ${show(times)}, budget 100 ms; ` +
      `the longest delay of the event loop is ${show(delays)}, budget 20 ms`,
  )
}
