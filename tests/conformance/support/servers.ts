import { hostEarlier, hostModern, type HostedServer, type Json, type Turn } from '../../support/mcp-host.ts'
import { taskAnswers, TASK_TOOLS } from './tasks.ts'
import { callTool, complete, getPrompt, listedTools, promptsOf, read, RESOURCES, TEMPLATES } from './items.ts'

/** A server with everything that the referee calls. */
export type FixtureServer = HostedServer

/** The fixture on SDK 1.x: sessions, and requests to the client over the stream of a call. */
export const startEarlierFixture = (): Promise<FixtureServer> => hostEarlier(answer)

/** The fixture on SDK 2.4: MCP 2026-07-28 alone. */
export const startModernFixture = (): Promise<FixtureServer> => hostModern(answer, taskAnswers())

/** Answers a method of either era. Returns `undefined` for an unknown one. */
function answer(method: string, params: Json, turn: Turn): Json | Promise<Json> | undefined {
  switch (method) {
    case 'tools/list':
      return { tools: [...listedTools(turn.era), ...(turn.era === 'modern' ? TASK_TOOLS : [])] }
    case 'tools/call':
      return callTool(String(params['name']), turn)
    case 'resources/list':
      return { resources: RESOURCES }
    case 'resources/templates/list':
      return { resourceTemplates: TEMPLATES }
    case 'resources/read':
      return read(String(params['uri']), turn.era)
    case 'prompts/list':
      return { prompts: promptsOf(turn.era) }
    case 'prompts/get':
      return getPrompt(String(params['name']), turn)
    case 'completion/complete':
      return complete(params)
    case 'resources/subscribe':
    case 'resources/unsubscribe':
    case 'logging/setLevel':
      return turn.era === 'legacy' ? {} : undefined
    default:
      return undefined
  }
}
