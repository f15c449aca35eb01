// The agent that LangGraph's server runs.
import { guard } from '@toolgate/adapters/langchain'
import { createAgent } from 'langchain'
import { ScriptedChatModel } from '../support/scripted-chat-model.ts'
import { callerOf, gate } from './gate.ts'

export const agent = createAgent({
  model: new ScriptedChatModel(), // your provider's
  middleware: [guard(gate, { caller: ({ configurable }) => callerOf(configurable?.['langgraph_auth_user']) })],
})
