// Research in three phases, search → analyse → write: each step offers only the tools of its phase.
import { fromAiSdk, guard } from '@toolgate/adapters/ai-sdk'
import { createGate, memoryAudit } from '@toolgate/core'
import { withTools } from '@toolgate/core/steps'
import { generateText, isStepCount, tool } from 'ai'
import { z } from 'zod'
import { type Answer, scriptedModel } from '../support/scripted-model.ts'

const audit = memoryAudit()
const gate = createGate({
  tools: fromAiSdk({
    search: tool({
      inputSchema: z.object({ query: z.string() }),
      execute: async ({ query }) => `3 pages about ${query}`,
    }),
    analyse: tool({ inputSchema: z.object({}), execute: async () => 'two of them agree' }),
    write: tool({ inputSchema: z.object({ title: z.string() }), execute: async ({ title }) => `wrote "${title}"` }),
    publish: tool({ inputSchema: z.object({}), execute: async () => 'published' }),
  }),
  policy: { name: 'research', deny: [{ match: 'publish', message: 'Publishing is for people.' }] },
  limits: 'search:2/60',
  audit,
  // A clock that stands still, so the output is always the same. Default: the system's.
  clock: { monotonicMs: () => 0, wallMs: () => 0 },
})

// A scripted model that ignores the phases. The gate enforces them.
const script: readonly Answer[] = [
  [
    ['search', { query: 'hinges' }],
    ['write', { title: 'Too early' }],
  ],
  [['search', { query: 'gates' }]],
  [
    ['search', { query: 'more gates' }],
    ['analyse', {}],
  ],
  [
    ['write', { title: 'On hinges' }],
    ['publish', {}],
  ],
  'It is written down.',
]
const model = scriptedModel(({ answers, sent }) => {
  console.log(`Step ${answers}: ${sent.join(', ')}`)
  return script[answers] ?? ''
})

const guarded = await guard(
  gate,
  { user: 'vera', session: 'research-1' },
  {
    prepareStep({ hasUsedTool, previousToolCalls }) {
      // A misspelt name does not compile. With dynamic sources it throws, with the nearest names.
      if (hasUsedTool('analyse')) return { activeTools: ['write', 'publish'], instructions: 'Write it down.' }
      // One search may find nothing; after the second, analyse the results.
      const searches = previousToolCalls().filter((call) => call.tool === 'search' && call.status === 'done')
      return searches.length < 2 ? withTools('search') : withTools('search', 'analyse')
    },
    onCall: ({ tool: id, outcome }) => console.log(`  ${id} → ${outcome.status}: ${outcome.text}`),
    onWarning: (warning) => console.log(`  warning: ${warning}`),
  },
)
const { text } = await generateText({
  model,
  instructions: 'Find out why gates have hinges.',
  prompt: 'Begin.',
  stopWhen: isStepCount(8),
  ...guarded,
})
console.log(text)

console.log('\nThe audit: one record ends each attempt')
for (const { seq, step, event, tool: id = '', reason = '' } of audit.records)
  console.log(`  ${String(seq).padStart(2)}  step ${step}  ${event.padEnd(17)} ${id.padEnd(8)} ${reason}`.trimEnd())
