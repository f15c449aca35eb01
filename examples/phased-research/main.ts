// Research in three phases, search → analyse → write: each step offers only the tools of its phase.
import { createGate, createSteps, memoryAudit, type PrepareStepContext, withTools } from '@toolgate/core'

const audit = memoryAudit()
const gate = createGate({
  tools: {
    search: { tags: ['read'], execute: ({ query }) => `3 pages about ${query}` },
    analyse: { tags: ['read'], execute: () => 'two of them agree' },
    write: { tags: ['write'], execute: ({ title }) => `wrote "${title}"` },
    publish: { tags: ['write'], execute: () => 'published' },
  },
  policy: { name: 'research', deny: [{ match: 'publish', message: 'Publishing is for people.' }] },
  limits: 'search:2/60',
  audit,
  // A clock that stands still, so that this prints the same each time. Leave it out, and it is the system's.
  clock: { monotonicMs: () => 0, wallMs: () => 0 },
})

const view = await gate.view({ user: 'vera', session: 'research-1' })
const steps = createSteps(view, {
  instructions: 'Find out why gates have hinges.',
  prepareStep({ hasUsedTool, previousToolCalls }: PrepareStepContext) {
    if (hasUsedTool('analyse')) return { ...withTools('write', 'publish'), instructions: 'Write it down.' }
    // One search may miss; after the second, look at what there is.
    const searches = previousToolCalls().filter(({ tool }) => tool === 'search')
    return searches.length < 2 ? withTools('search') : withTools('search', 'analyse')
  },
})

// What a model might ask for. It does not keep to the phases: the gate does.
const script = [
  [
    { tool: 'search', input: { query: 'hinges' } },
    { tool: 'write', input: { title: 'Too early' } },
  ],
  [{ tool: 'search', input: { query: 'gates' } }],
  [
    { tool: 'search', input: { query: 'more gates' } },
    { tool: 'analyse', input: {} },
  ],
  [
    { tool: 'write', input: { title: 'On hinges' } },
    { tool: 'publish', input: {} },
  ],
] as const

for (const wanted of script) {
  const step = await steps.next()
  console.log(`Step ${step.stepNumber}: ${step.view.ids.join(', ')}   (${step.instructions})`)
  for (const warning of step.warnings) console.log(`  warning: ${warning}`)
  for (const { tool, input } of wanted) {
    const { status, callId, text } = await step.view.call({ tool, input })
    steps.record({ tool, callId, status })
    console.log(`  ${tool} ${JSON.stringify(input)}\n    ${status}: ${text}`)
  }
}

console.log('\nThe audit: one record ends each attempt')
for (const { seq, event, tool = '', reason = '', limit = '' } of audit.records) {
  console.log(`  ${String(seq).padStart(2)}  ${event.padEnd(17)} ${tool.padEnd(8)} ${reason} ${limit}`.trimEnd())
}
