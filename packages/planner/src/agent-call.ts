/** A sub-agent at work: its tool, and the call that it answers. */
export interface AgentCall {
  readonly tool: string
  readonly callId: string
}
