// Where people decide: resuming a run approves nothing. LangGraph's server authenticates these routes too.
import { ToolgateError } from '@toolgate/core'
import { Hono } from 'hono'
import { callerOf, gate } from './gate.ts'
import type { User } from './auth.ts'

export const app = new Hono<{ Variables: { auth?: { user: User } } }>()

app.get('/approvals', async (context) => {
  const { user = '' } = callerOf(context.get('auth')?.user)
  return context.json(await gate.approvals.list({ status: 'pending', user }))
})

app.post('/approvals/:id', async (context) => {
  const person = callerOf(context.get('auth')?.user)
  const { decision } = (await context.req.json()) as { decision: 'approve' | 'reject' }
  try {
    return context.json(await gate.approvals.decide(person, context.req.param('id'), { decision }))
  } catch (error) {
    if (error instanceof ToolgateError) return context.json({ error: error.code }, 403)
    throw error
  }
})
