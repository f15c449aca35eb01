import { type Caller, createGate, defineTool } from '@toolgate/core'
import type { Shown } from './attackers.ts'
import type { OpenWay } from './way.ts'

const CALLER: Caller = { user: 'emma', tenant: 'acme' }
const APPROVER: Caller = { user: 'ada', tenant: 'acme', roles: ['approver'] }

/** Through the gate of the library. */
export const openLibrary: OpenWay = async (suite, { labels, policy }) => {
  let next: Shown = { text: '', isError: false }
  let runs = 0
  const gate = createGate({
    tools: suite.tools.map(({ name, description, inputSchema }) =>
      defineTool({
        namespace: suite.name,
        name,
        description,
        inputSchema,
        ...labels.tools.get(name),
        execute: () => ({ content: [{ type: 'text', text: next.text }], isError: next.isError }),
      }),
    ),
    labels: { trusted: labels.trusted },
    policy,
    onWarning: () => {},
  })
  return {
    async start({ words, tools }) {
      const view = await gate.view(CALLER, tools && { activeTools: tools })
      const run = { id: `run-${++runs}`, ...(words !== undefined && { userWords: words }) }
      return {
        async call(tool, input, shown) {
          next = shown
          const outcome = await view.call({ tool: `${suite.name}:${tool}`, input, run })
          if (outcome.status === 'done') return { status: 'done' }
          if (outcome.status !== 'waiting') return { status: 'refused', text: outcome.text }
          const { approval, text } = outcome
          return {
            status: 'waiting',
            text,
            decide: async (decision) => void (await gate.approvals.decide(APPROVER, approval.id, { decision })),
          }
        },
        end: () => gate.histories.end(CALLER, run),
      }
    },
    close: () => gate.close(),
  }
}
