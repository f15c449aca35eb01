// One process of the application, which does what its parent sends: the parent stands for requests, and for a runner's queue.
import type { Caller } from '@toolgate/core'
import { openGate } from './gate.ts'
import { runWorkflow } from './workflow.ts'

export type Order =
  | { readonly does: 'call'; readonly caller: Caller; readonly tool: string; readonly times?: number }
  | { readonly does: 'approve'; readonly by: Caller }
  | { readonly does: 'halt' | 'release'; readonly tool: string }
  /** Crashes after the call of a step, before the runner keeps its result. */
  | { readonly does: 'workflow'; readonly id: string; readonly journal: string; readonly crashesAt?: string }

const { gate, ready } = await openGate()

async function obey(order: Order): Promise<unknown> {
  // A frozen process has no lease when it goes on. This costs nothing while the lease holds.
  await ready()
  switch (order.does) {
    case 'call': {
      const view = await gate.view(order.caller)
      const call = async (n: number) => view.call({ tool: order.tool, input: { n } })
      const outcomes = await Promise.all(Array.from({ length: order.times ?? 1 }, (_, n) => call(n)))
      return outcomes.map(({ status, text }) => ({ status, text }))
    }
    case 'approve': {
      const [waiting] = await gate.approvals.list({ status: 'pending' })
      return gate.approvals.decide(order.by, waiting?.id ?? '', { decision: 'approve' })
    }
    case 'halt':
      return gate.halt({ tool: order.tool, reason: 'it leaks' })
    case 'release':
      return gate.release({ tool: order.tool })
    case 'workflow': {
      const view = await gate.view({ user: 'vera' })
      return runWorkflow(order.id, order.journal, async (step) => {
        for (const n of [1, 2, 3, 4, 5])
          await step(`report ${n}`, async (idempotencyKey) => {
            const { status } = await view.call({ tool: 'report', input: { n }, idempotencyKey })
            if (order.crashesAt === `report ${n}`) process.kill(process.pid, 'SIGKILL')
            return status
          })
      })
    }
  }
}

process.on('message', (order: Order) => {
  obey(order).then(
    (value) => process.send?.({ value }),
    (error: unknown) => process.send?.({ problem: String(error) }),
  )
})
process.send?.({ value: 'open' })
