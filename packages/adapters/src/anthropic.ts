import type { Caller, Gate } from '@toolgate/core'
import type { ExposedTools, ExposeOptions } from '@toolgate/expose'
import { type Shape, shapeOf } from '@toolgate/values'
import { checkGuardFor } from './shared/guard-options.ts'
import {
  type GuardedLoop,
  openProviderRun,
  PROVIDER_KEYS,
  type ProviderRunOptions,
  toGuardedLoop,
} from './shared/provider-run.ts'

export type { GuardedLoop, ProviderRunOptions } from './shared/provider-run.ts'
export type { GuardedCallEvent } from './shared/runs.ts'

/** A `tool_use` block of Anthropic's Messages API. */
export interface ToolUse {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: unknown
}

/** The content block that answers a call, for the user's next message. */
export interface ToolResult {
  type: 'tool_result'
  tool_use_id: string
  content: string
  is_error?: boolean
}

export interface AnthropicRunOptions<Name extends string = string>
  extends ProviderRunOptions<Name>, Pick<ExposeOptions, 'search'> {}

const SHAPE: Shape = shapeOf<AnthropicRunOptions>({ ...PROVIDER_KEYS, search: true })

export type AnthropicRun = GuardedLoop<{ tools?: ExposedTools['anthropic'] }, ToolUse, ToolResult>

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
  checkGuardFor(gate, caller, options, SHAPE)
  const run = await openProviderRun(gate, caller, 'anthropic', options)
  return toGuardedLoop(run, async ({ id, name, input }) => {
    const { text, ok } = await run.call({ name, input, callId: id })
    return { type: 'tool_result', tool_use_id: id, content: text, ...(!ok && { is_error: true }) }
  })
}
