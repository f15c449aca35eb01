import { createGate, defineTool } from '@toolgate/core'
import { createRedactor } from '@toolgate/core/redact'
import { HOSTILE_CALLS, type HostileCall } from '../packages/core/src/testing/hostile-inputs.ts'
import { printGatewayStalls } from './hostile-gateway.ts'
import { digits, printTable } from './lib.ts'
import { longestStall } from './stall.ts'

const BUDGET_MS = 50

/** One call through a gate in this process: schema, policy, preview, audit and redaction. */
async function rowOf({ name, inputSchema, policy, redactPatterns, input }: HostileCall): Promise<readonly string[]> {
  const gate = createGate({
    tools: [defineTool({ name: 'tool', inputSchema, execute: () => 'done' })],
    ...(policy ? { policy } : {}),
    ...(redactPatterns ? { redactor: createRedactor({ patterns: redactPatterns }) } : {}),
  })
  const view = await gate.view({ user: 'vera' })
  // What is loaded and compiled at the first call is no part of the figure.
  await view.call({ tool: 'tool', input: {} })
  const value = input()
  let came = ''
  const { longestMs, cpuMs } = await longestStall(async () => {
    const outcome = await view.call({ tool: 'tool', input: value })
    came = outcome.status === 'done' ? 'done' : outcome.text.slice(0, 90)
  })
  return [name, digits(longestMs), digits(cpuMs), longestMs > BUDGET_MS ? 'over' : '', came]
}

for (const [kind, calls] of Object.entries(HOSTILE_CALLS)) {
  const rows: (readonly string[])[] = []
  for (const call of calls) rows.push(await rowOf(call))
  printTable(
    `Hostile ${kind}: the longest event-loop delay of one call, at most ${BUDGET_MS} ms`,
    ['call', 'ms', 'CPU ms', '', 'outcome'],
    rows,
  )
}

await printGatewayStalls()
