import { Mastra } from '@mastra/core'
import { Agent, type AgentConfig } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { RequestContext } from '@mastra/core/request-context'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { type Caller, createGate, defineCaller, type Gate, type GateOptions } from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'
import type { NamedGateOptions } from '@toolgate/core/internal'
import { z } from 'zod'
import { fromMastra } from '../mastra/import-tools.ts'
import { guard } from '../mastra/guard.ts'
import type { GuardOptions } from '../mastra/options.ts'
import { type MockModel, mockModel, type ModelCall, type Turn } from './mock-model.ts'
import { ADMINS_DELETE, createTestAudit, createWitness, type Witness } from './world.ts'

/** The tools of a test, made with Mastra's own `createTool`. */
export function createTools(witness: Witness) {
  const make = (id: string) => {
    const body = witness.body(id)
    return createTool({
      id,
      description: `Does ${id}.`,
      inputSchema: z.object({ q: z.string().optional() }),
      outputSchema: z.string(),
      execute: (input) => Promise.resolve(body(input)),
    })
  }
  return { search: make('search'), delete_all: make('delete_all'), alpha: make('alpha') }
}

type SceneOptions = Omit<GateOptions, 'tools' | 'sources' | 'audit'>

/** A gate over those tools. Only admins see `delete_all`, by default. */
export function createScene(options: SceneOptions = {}): {
  gate: Gate
  audit: MemoryAudit & { attempts(): readonly string[] }
  witness: Witness
} {
  const witness = createWitness()
  const audit = createTestAudit()
  const tools = fromMastra(createTools(witness))
  const named = { tools, policy: ADMINS_DELETE, ...options, audit } as NamedGateOptions<string>
  return { gate: createGate(named), audit, witness }
}

export const byContext: Pick<GuardOptions, 'caller'> = {
  caller: ({ requestContext }) => requestContext.get('caller') as Caller,
}

export function contextOf(caller: Caller): RequestContext {
  return new RequestContext<unknown>([['caller', defineCaller(caller)]])
}

/**
 * Returns the request context that Mastra's server builds for a request: first the server's own entries, then those of
 * the body whose keys are not taken (`mergeBodyRequestContext` of `@mastra/server`).
 */
export function serverContext(body: string, middleware: (context: RequestContext) => void = () => {}): RequestContext {
  const context = new RequestContext()
  middleware(context)
  const { requestContext } = JSON.parse(body) as { requestContext: object }
  for (const [key, value] of Object.entries(requestContext)) if (context.get(key) === undefined) context.set(key, value)
  return context
}

interface GuardedAgent {
  readonly agent: Agent
  readonly model: MockModel
}

/** Creates an agent as a user writes it, with the guard's options and then the test's. */
export function createAgent(
  gate: Gate,
  turns: readonly Turn[] | Parameters<typeof mockModel>[0],
  { after = {}, ...options }: Partial<GuardOptions> & { after?: Partial<AgentConfig> } = {},
): GuardedAgent {
  const model = mockModel(turns)
  const agent = new Agent({
    id: 'desk',
    name: 'desk',
    instructions: 'Help.',
    model: model as unknown as MastraModelConfig,
    ...guard(gate, { ...byContext, ...options }),
    // Typed as any object: with the exact type, the compiler gives up.
    ...(after as object),
  })
  return { agent: agent as unknown as Agent, model }
}

/** Creates the same scene with a store for paused runs. Mastra cannot pause without one. */
export function createStored(
  gate: Gate,
  turns: readonly Turn[],
  { storage = new InMemoryStore(), ...options }: Parameters<typeof createAgent>[2] & { storage?: InMemoryStore } = {},
): GuardedAgent {
  const guarded = createAgent(gate, turns, options)
  void new Mastra({ agents: { desk: guarded.agent }, storage, logger: false })
  return guarded
}

export function callOf(name: string, input: unknown = {}, id: string = `call-${name}`): ModelCall {
  return { name, input, id }
}
