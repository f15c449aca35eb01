import { fromAiSdk } from '@toolgate/adapters/ai-sdk'
import { createGate, defineTool, type Gate } from '@toolgate/core'
import { jsonSchema, type LanguageModel, tool } from 'ai'
import { createPlanner } from './planner.ts'
import type { RunResult } from './result.ts'
import { subAgent } from './sub-agent.ts'

declare const model: LanguageModel
const caller = { user: 'vera' }

const named = createPlanner({ model, gate: createGate({ tools: { search: {}, pay: {} } }) })
void named.run({ prompt: 'x', caller, activeTools: ['search'] })
// @ts-expect-error -- no tool has this name
void named.run({ prompt: 'x', caller, activeTools: ['serach'] })
// @ts-expect-error -- who asks is never left out
void named.run({ prompt: 'x' })
void named.fork({ policy: { deny: ['pay'] } }).run({ prompt: 'x', caller, activeTools: ['pay'] })
// @ts-expect-error -- no tool has this name
void named.fork({ policy: { deny: ['paye'] } })

const search = tool({ inputSchema: jsonSchema<{ q: string }>({ type: 'object' }), execute: () => 'found' })
const native = createPlanner({ model, gate: createGate({ tools: fromAiSdk({ search }) }) })
void native.run({ prompt: 'x', caller, activeTools: ['search'] })
// @ts-expect-error -- no tool has this name
void native.stream({ prompt: 'x', caller, activeTools: ['pay'] })

declare const dynamic: Gate
void createPlanner({ model, gate: dynamic }).run({ prompt: 'x', caller, activeTools: ['whatever'] })

// @ts-expect-error -- what runs is the gate's to give
createPlanner({ model, gate: dynamic, settings: { tools: { search } } })
// @ts-expect-error -- there is no such budget
createPlanner({ model, gate: dynamic, budgets: { time: 5 } })
createGate({ tools: [subAgent({ name: 'clerk' }), defineTool({ name: 'search' })] })

export function tokenOf(result: RunResult): string | undefined {
  if (result.status === 'paused') return result.resumeToken
  // @ts-expect-error -- only a paused run has one
  return result.resumeToken as string
}
