// Mastra's own server in front of a gate: who asks is the user that Mastra's authentication verified.
import { serve, type ServerType } from '@hono/node-server'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import type { RequestContext } from '@mastra/core/request-context'
import { registerApiRoute, SimpleAuth } from '@mastra/core/server'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { type HonoBindings, type HonoVariables, MastraServer } from '@mastra/hono'
import { fromMastra, guard } from '@toolgate/adapters/mastra'
import { type Caller, createGate, defineCaller, memoryAudit, ToolgateError } from '@toolgate/core'
import { Hono } from 'hono'
import { z } from 'zod'

interface User {
  readonly id: string
  readonly roles: readonly string[]
}

/** Your identity provider takes its place: any auth provider of Mastra returns such a user. */
const auth = new SimpleAuth<User>({
  tokens: {
    'token-of-vera': { id: 'vera', roles: ['viewer'] },
    'token-of-bob': { id: 'bob', roles: ['viewer'] },
    'token-of-ada': { id: 'ada', roles: ['admin'] },
    'token-of-omar': { id: 'omar', roles: ['approver'] },
  },
})

/** Mastra's server writes this entry after authentication, and takes it from no request. */
const VERIFIED = 'mastra__user'

function callerOf({ requestContext }: { readonly requestContext: RequestContext }): Caller {
  const user = requestContext.get(VERIFIED) as User | undefined
  if (!user) throw new Error('not logged in')
  return defineCaller({ user: user.id, roles: [...user.roles] })
}

/** Starts the server on a free port. `ran` gets what the tools really did. */
export async function start(model: MastraModelConfig, ran: (what: string) => void) {
  const make = (id: string, done: string) =>
    createTool({
      id,
      description: `Does ${id}.`,
      inputSchema: z.object({ what: z.string() }),
      execute: ({ what }) => {
        ran(`${id} ${what}`)
        return Promise.resolve(`${what} ${done}`)
      },
    })
  const tools = { search: make('search', 'found'), pay: make('pay', 'paid'), remove: make('remove', 'removed') }
  const audit = memoryAudit()
  const gate = createGate({
    tools: fromMastra(tools, { remove: { tags: ['danger'] } }),
    policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['pay'] },
    audit,
  })
  const desk = new Agent({
    id: 'desk',
    name: 'Desk',
    instructions: 'Help.',
    model,
    ...guard(gate, { caller: callerOf }),
  })

  /** What a person decides: Mastra's own `approve-tool-call` only resumes, and the gate's approval decides. */
  const decide = registerApiRoute('/approvals/:id', {
    method: 'POST',
    async handler(context) {
      const person = callerOf({ requestContext: context.get('requestContext') })
      const { decision } = (await context.req.json()) as { decision: 'approve' | 'reject' }
      try {
        return context.json(await gate.approvals.decide(person, context.req.param('id'), { decision }))
      } catch (error) {
        if (error instanceof ToolgateError) return context.json({ error: error.code }, 403)
        throw error
      }
    },
  })
  const pending = registerApiRoute('/approvals', {
    method: 'GET',
    async handler(context) {
      const { user = '' } = callerOf({ requestContext: context.get('requestContext') })
      return context.json(await gate.approvals.list({ status: 'pending', user }))
    },
  })

  const mastra = new Mastra({
    agents: { desk },
    storage: new InMemoryStore(), // keeps paused runs
    server: { auth, apiRoutes: [pending, decide] },
    logger: false,
  })
  const app = new Hono<{ Bindings: HonoBindings; Variables: HonoVariables }>()
  await new MastraServer({ app, mastra }).init()
  const server = await new Promise<ServerType>((resolve) => {
    const listening = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(listening))
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { url: `http://127.0.0.1:${port}`, gate, audit, close: () => server.close() }
}
