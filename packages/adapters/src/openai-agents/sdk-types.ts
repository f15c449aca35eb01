import type { FunctionTool, Handoff, RunContext, Tool } from '@openai/agents'

// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own union of tools has it: a tool of any parameters
export type AnyFunctionTool = FunctionTool<any, any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own list of handoffs has it
export type AnyHandoff = Handoff<any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own union of tools has it
export type AnyTool = Tool<any>
// oxlint-disable-next-line typescript/no-explicit-any -- each run has a context of the host's own type
export type AnyContext = any
export type AnyRunContext = RunContext<AnyContext>

/** What a gate can govern: the SDK runs it in this process, through a function of its own. */
export type Governable = AnyFunctionTool | AnyHandoff
export type CallDetails = Parameters<AnyFunctionTool['invoke']>[2]
