import { parseArgs } from 'node:util'
import { type CallOutcome, createGate, defineTool, memoryAudit } from '@toolgate/core'
import type { AuditSink } from '@toolgate/core/audit'
import { JSON_BOUNDS, readJson } from '@toolgate/values/json'
import { createRedactor } from '@toolgate/values/redact'
import { HOSTILE_CALLS, type HostileCall } from '../packages/testing/support/hostile-inputs.ts'
import { printGatewayStalls } from './hostile-gateway.ts'
import { digits, printTable } from './lib.ts'
import { longestStall } from './stall.ts'

const BUDGET_MS = 50
const RUN = { id: 'run', userWords: 'Write to ann@acme.com' }

/** One call through a gate in this process: schema, policy, preview, audit and redaction. */
async function rowOf(call: HostileCall): Promise<readonly string[]> {
  const input = call.input()
  const measured = await measure(call, input)
  const { longestMs, longestCpuMs } = measured
  const verdict = !isWithinBounds(input) ? 'beyond' : longestCpuMs > BUDGET_MS ? 'over' : ''
  return [call.name, digits(longestMs), digits(longestCpuMs), verdict, measured.came]
}

async function measure(call: HostileCall, input: Record<string, unknown>) {
  const audit = memoryAudit({ preview: true })
  const view = await gateOf(audit, call).view({ user: 'vera' })
  // What is loaded and compiled at the first call is no part of the figure.
  await view.call({ tool: 'tool', input: {} })
  let runs = 0
  let outcome: CallOutcome | undefined
  const stall = await longestStall(async () => {
    const run = { ...RUN, id: `run ${runs++}` }
    if (call.seen !== undefined) await view.call({ tool: 'read', input: {}, run })
    outcome = await view.call({ tool: 'tool', input, ...(call.seen === undefined ? {} : { run }) })
    await audit.flush()
  })
  return { ...stall, came: outcome?.status === 'done' ? 'done' : (outcome?.text.slice(0, 90) ?? '') }
}

function gateOf(audit: AuditSink, { inputSchema, policy, redactPatterns, cost, addressees, seen = '' }: HostileCall) {
  return createGate({
    tools: [
      defineTool({
        name: 'tool',
        ...(inputSchema ? { inputSchema } : {}),
        ...(addressees ? { addressees } : {}),
        execute: () => 'done',
      }),
      defineTool({ name: 'read', execute: () => seen }),
    ],
    audit,
    ...(policy ? { policy } : {}),
    ...(cost === undefined ? {} : { limits: [{ match: 'tool', max: 1_000_000, windowMs: 1000, per: ['user'], cost }] }),
    ...(redactPatterns ? { redactor: createRedactor({ patterns: redactPatterns }) } : {}),
  })
}

/** Beyond them no door takes an input, so that only a host that calls the gate itself can send it. */
function isWithinBounds(input: Record<string, unknown>): boolean {
  try {
    readJson(JSON.stringify(input), { bounds: JSON_BOUNDS.request })
    return true
  } catch {
    return false
  }
}

const { only = '' } = parseArgs({ options: { only: { type: 'string' } } }).values
for (const [kind, calls] of Object.entries(HOSTILE_CALLS)) {
  const chosen = calls.filter(({ name }) => `${kind}: ${name}`.includes(only))
  const rows: (readonly string[])[] = []
  for (const call of chosen) rows.push(await rowOf(call))
  if (rows.length === 0) continue
  printTable(
    `Hostile ${kind}: the longest event-loop delay of one call, at most ${BUDGET_MS} ms of CPU time`,
    ['call', 'ms', 'CPU ms', '', 'outcome'],
    rows,
  )
}

await printGatewayStalls(only === '' ? [] : [only])
