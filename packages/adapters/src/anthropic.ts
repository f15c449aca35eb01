import type { Caller, ExposedTools, ExposeOptions, Gate, Step, View } from '@toolgate/core'
import { openProviderRun, type ProviderRunOptions } from './shared/provider-run.ts'

export type { ProviderRunOptions } from './shared/provider-run.ts'

/** A call as Anthropic's Messages API gives it among the content. */
export interface ToolUse {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: unknown
}

/** The content block that answers it, for the next message of the user. */
export interface ToolResult {
  type: 'tool_result'
  tool_use_id: string
  content: string
  is_error?: boolean
}

export interface AnthropicRunOptions<Name extends string = string>
  extends ProviderRunOptions<Name>, Pick<ExposeOptions, 'search'> {}

/** One run of an agent whose loop is the host's own. */
export interface AnthropicRun {
  /** Names the run in the audit. */
  readonly id: string
  readonly view: View
  /** The step under way, with its instructions, model and options. */
  readonly step: Step | undefined
  /**
   * Prepares the next step, and gives what to spread into its request. Availability and locks are those of now.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
   */
  next(): Promise<{ tools?: ExposedTools['anthropic'] }>
  /** Takes a call of the model through the gate, and gives what answers it. Never throws for what the model did. */
  execute(call: ToolUse): Promise<ToolResult>
}

/**
 * Guards a loop over the plain `@anthropic-ai/sdk`.
 *
 * @throws {ToolgateError} as {@link Gate.view} does
 * @example
 * const run = await guard(gate, caller)
 * const { content } = await client.messages.create({ model, max_tokens, messages, ...(await run.next()) })
 * const results = await Promise.all(content.filter((block) => block.type === 'tool_use').map(run.execute))
 */
export async function guard(gate: Gate, caller: Caller, options: AnthropicRunOptions = {}): Promise<AnthropicRun> {
  const run = await openProviderRun(gate, caller, 'anthropic', options)
  return {
    id: run.id,
    view: run.view,
    get step() {
      return run.step
    },
    next: () => run.next(),
    async execute({ id, name, input }) {
      const { text, ok } = await run.call({ name, input, callId: id })
      return { type: 'tool_result', tool_use_id: id, content: text, ...(!ok && { is_error: true }) }
    },
  }
}
