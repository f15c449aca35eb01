import { createGate } from '@toolgate/core'
import { unchanged, withTools } from '@toolgate/core/steps'
import { generateText, type LanguageModel, streamText, tool, ToolLoopAgent } from 'ai'
import { z } from 'zod'
import { fromAiSdk, guard } from '../ai-sdk.ts'

declare const model: LanguageModel

const tools = {
  search: tool({ inputSchema: z.object({ q: z.string() }), execute: ({ q }) => ({ hits: [q] }) }),
  count: tool({ inputSchema: z.object({ of: z.number() }), execute: ({ of }) => of }),
}
const gate = createGate({ tools: fromAiSdk(tools, { search: { tags: ['read'] } }) })

type Same<A, B> = [A, B] extends [B, A] ? true : false
declare function same<A, B>(_: Same<A, B>): void

/** The tools’ inputs and outputs are typed after the spread. */
export async function keepsTheTypes(): Promise<void> {
  const result = await generateText({ model, prompt: 'p', ...(await guard(gate, { user: 'vera' })) })
  for (const call of result.toolCalls) {
    if (call.dynamic) continue
    if (call.toolName === 'search') same<typeof call.input, { q: string }>(true)
    // @ts-expect-error: there is no such tool
    if (call.toolName === 'serach') return
  }
  for (const given of result.toolResults)
    if (!given.dynamic && given.toolName === 'count') same<typeof given.output, number>(true)
  const streamed = streamText({ model, prompt: 'p', ...(await guard(gate, { user: 'vera' })) })
  for (const call of await streamed.toolCalls)
    if (!call.dynamic && call.toolName === 'count') same<typeof call.input, { of: number }>(true)
}

/** Names are checked, and other options of the SDK keep their types beside the spread. */
export async function checksNames(): Promise<void> {
  await guard(gate, { user: 'vera' }, { activeTools: ['search'], prepareStep: () => ({ activeTools: ['count'] }) })
  // @ts-expect-error: there is no such tool
  await guard(gate, { user: 'vera' }, { activeTools: ['serach'] })
  // @ts-expect-error: there is no such tool
  await guard(gate, { user: 'vera' }, { prepareStep: () => ({ activeTools: ['serach'] }) })
  await guard(
    gate,
    { user: 'vera' },
    { prepareStep: (step) => (step.hasUsedTool('search') ? unchanged() : withTools('search')) },
  )
  // @ts-expect-error: there is no such tool
  await guard(gate, { user: 'vera' }, { prepareStep: () => withTools('serach') })
  // @ts-expect-error: there is no such tool
  fromAiSdk(tools, { serach: { tags: ['read'] } })
  const result = await generateText({
    model,
    prompt: 'p',
    runtimeContext: { tenant: 'acme' },
    ...(await guard(gate, { user: 'vera' })),
    onStepEnd: ({ runtimeContext }) => void runtimeContext['tenant'],
  })
  result.text.toUpperCase()
}

/* oxlint-disable typescript/no-misused-promises, typescript/no-misused-spread -- that is what is tested */
/** A guard that was not awaited is not a set of options, wherever the tools are. */
export async function mustBeAwaited(): Promise<void> {
  // @ts-expect-error: it is a promise
  await generateText({ model, prompt: 'p', ...guard(gate, { user: 'vera' }) })
  // @ts-expect-error: it is a promise, and its spread leaves the tools unguarded
  await generateText({ model, prompt: 'p', ...guard(gate, { user: 'vera' }), tools })
  // @ts-expect-error: likewise
  streamText({ model, prompt: 'p', ...guard(gate, { user: 'vera' }), tools })
  // @ts-expect-error: likewise
  void new ToolLoopAgent({ model, ...guard(gate, { user: 'vera' }), tools })
}

/* oxlint-enable typescript/no-misused-promises, typescript/no-misused-spread */

/** An agent that is shared takes its caller at each call. */
export const agent: ToolLoopAgent<{ user: string }, typeof tools> = new ToolLoopAgent({
  model,
  tools,
  callOptionsSchema: z.object({ user: z.string() }),
  prepareCall: async ({ options, ...settings }) => ({ ...settings, ...(await guard(gate, { user: options.user })) }),
})

/** A gate of other tools returns a tool map of any names. */
export async function takesAnyGate(): Promise<void> {
  const any = createGate()
  await generateText({ model, prompt: 'p', ...(await guard(any, { user: 'vera' })) })
  await generateText({ model, prompt: 'p', ...(await guard(any, await any.view({ user: 'vera' }))) })
}

/** What a step sees are names that it may narrow to. */
export async function narrowsToWhatItSees(): Promise<void> {
  await guard(
    gate,
    { user: 'vera' },
    { prepareStep: ({ visibleTools }) => ({ activeTools: visibleTools.filter((name) => name !== 'count') }) },
  )
}
