// The tools, the rules, and how LangGraph's verified user becomes the caller.
import { appendFileSync } from 'node:fs'
import { fromLangChain } from '@toolgate/adapters/langchain'
import { type Caller, createGate, defineCaller } from '@toolgate/core'
import { tool } from 'langchain'
import { z } from 'zod'
import type { User } from './auth.ts'

/** What the tools really did goes here. */
const ledger = process.env['LEDGER'] ?? '/dev/null'

const make = <const Name extends string>(name: Name, done: string) =>
  tool(
    ({ what }) => {
      appendFileSync(ledger, `${name} ${what}\n`)
      return `${what} ${done}`
    },
    { name, description: `Does ${name}.`, schema: z.object({ what: z.string() }) },
  )

export const gate = createGate({
  tools: fromLangChain([make('search', 'found'), make('pay', 'paid'), make('remove', 'removed')], {
    remove: { tags: ['danger'] },
  }),
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['pay'] },
})

/** `user` must be what LangGraph's server verified: `langgraph_auth_user`, which it overwrites in each request. */
export function callerOf(user: unknown): Caller {
  if (!user) throw new Error('not logged in')
  const { identity, roles } = user as User
  return defineCaller({ user: identity, roles: [...roles] })
}
