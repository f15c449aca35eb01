import { Command, MemorySaver } from '@langchain/langgraph'
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  humanInTheLoopMiddleware,
  toolCallLimitMiddleware,
  ToolMessage,
} from 'langchain'
import { z } from 'zod'
import type { Caller } from '@toolgate/core'
import { describeMatrixRow, installedVersion, type Observation, rejectionCode } from '../testing/matrix.ts'
import { ADMIN, ADMINS_DELETE, createWitness, VIEWER, type Witness } from '../testing/world.ts'
import { decideApprovals } from './approvals.ts'
import {
  createWorld,
  HELLO,
  langChainWorld,
  loose,
  scripted,
  type ScriptedCall,
  type ScriptedModel,
} from './testing/agents.ts'

const DELETES: readonly ScriptedCall[] = [{ name: 'delete_all', id: 'c1' }]
const SEARCHES: readonly ScriptedCall[] = Array.from({ length: 5 }, (_, i) => ({ name: 'search', id: `c${i}` }))
const ASKS = { ask: ['delete_all'] }
const APPROVED = { decisions: [{ type: 'approve' }] }

const ranNot = ({ ran }: Witness): Observation => {
  const did = ran.includes('delete_all')
  return { holds: !did, saw: did ? 'delete_all ran' : 'delete_all did not run' }
}
const sentNot = ({ sent }: ScriptedModel): Observation => {
  const hidden = sent.flat().includes('delete_all')
  return { holds: !hidden, saw: hidden ? 'delete_all was sent' : `sent: ${sent[0]?.join(', ')}` }
}
const ranSearches = ({ ran }: Witness): Observation => ({
  holds: ran.length === 2,
  saw: `${ran.length} of 5 ran, 2 may`,
})

/** A request whose body says that an admin asks, as LangGraph's server hands it to a graph. */
const forged = () => ({ context: JSON.parse(JSON.stringify({ caller: ADMIN })) as never })

/** LangChain’s own way to hide: a middleware that filters the sent tools. The hidden ones may change. */
function hiding(hidden: Set<string>): AgentMiddleware {
  return createMiddleware({
    name: 'Hiding',
    wrapModelCall: (request, handler) =>
      handler({ ...request, tools: request.tools.filter(({ name }) => !hidden.has(String(name))) }),
  }) as AgentMiddleware
}

function bare(calls: readonly ScriptedCall[], middleware: readonly AgentMiddleware[]) {
  const witness = createWitness()
  const model = scripted(calls)
  const agent = createAgent({
    model,
    tools: [...langChainWorld(witness)],
    middleware: [...middleware],
    checkpointer: new MemorySaver(),
  })
  const config = { configurable: { thread_id: 't1' } }
  return { witness, model, invoke: (input: Parameters<typeof agent.invoke>[0]) => agent.invoke(input, config) }
}

const asking = () => loose(humanInTheLoopMiddleware({ interruptOn: { delete_all: true } } as never))
const resumeWith = (resume: unknown) => new Command({ resume })

describeMatrixRow('langchain', {
  framework: 'LangChain',
  version: installedVersion('langchain'),
  without: {
    async see() {
      const { model, invoke } = bare(DELETES, [hiding(new Set(['delete_all']))])
      await invoke(HELLO)
      return sentNot(model)
    },
    async run() {
      const { witness, invoke } = bare(DELETES, [hiding(new Set(['delete_all']))])
      await invoke(HELLO)
      return ranNot(witness)
    },
    async resume() {
      const hidden = new Set<string>()
      const { witness, invoke } = bare(DELETES, [hiding(hidden), asking()])
      await invoke(HELLO)
      hidden.add('delete_all')
      await invoke(resumeWith(APPROVED))
      return ranNot(witness)
    },
    async approve() {
      const { witness, invoke } = bare(DELETES, [asking()])
      await invoke(HELLO)
      // The value that a run is resumed with is the approval: LangChain asks nobody whose it is.
      await invoke(resumeWith(APPROVED))
      const observed = ranNot(witness)
      return observed.holds ? observed : { ...observed, saw: 'delete_all ran by a value that anybody can send' }
    },
    audit: undefined,
    async limit() {
      const limit = loose(toolCallLimitMiddleware({ toolName: 'search', runLimit: 2 } as never))
      const { witness, invoke } = bare(SEARCHES, [limit])
      await invoke(HELLO)
      return ranSearches(witness)
    },
    explain: undefined,
    async caller() {
      const byRole = createMiddleware({
        name: 'ByRole',
        contextSchema: z.object({ caller: z.custom<Caller>() }),
        wrapToolCall: (request, handler) =>
          request.runtime.context.caller.roles?.includes('admin') === true
            ? handler(request)
            : new ToolMessage({ content: 'no', tool_call_id: request.toolCall.id ?? '' }),
      })
      const witness = createWitness()
      const agent = createAgent({ model: scripted(DELETES), tools: [...langChainWorld(witness)], middleware: [byRole] })
      await agent.invoke(HELLO, forged())
      return ranNot(witness)
    },
  },
  with: {
    async see() {
      const model = scripted(DELETES)
      await createWorld(model, { policy: ADMINS_DELETE }).run(VIEWER)
      return sentNot(model)
    },
    async run() {
      const { run, witness } = createWorld(scripted(DELETES), { policy: ADMINS_DELETE })
      await run(VIEWER)
      return ranNot(witness)
    },
    async resume() {
      const { gate, run, resume, witness } = createWorld(scripted(DELETES), {
        policy: ASKS,
        checkpointer: new MemorySaver(),
      })
      await decideApprovals(gate, VIEWER, await run(VIEWER), { decision: 'approve' })
      gate.setPolicy({ deny: ['delete_all'] })
      await resume(VIEWER)
      return ranNot(witness)
    },
    async approve() {
      const world = createWorld(scripted(DELETES), { policy: ASKS, checkpointer: new MemorySaver() })
      await world.run(VIEWER)
      await world.resumeWith(VIEWER, APPROVED)
      return ranNot(world.witness)
    },
    async audit() {
      const { run, audit } = createWorld(scripted(DELETES), { policy: ADMINS_DELETE })
      await run(VIEWER)
      return { holds: audit.attempts().length === 1, saw: audit.attempts().join('; ') }
    },
    async limit() {
      const { run, witness } = createWorld(scripted(SEARCHES), { limits: 'search:2/60' })
      await run(VIEWER)
      return ranSearches(witness)
    },
    async explain() {
      const { gate } = createWorld(scripted(), { policy: ADMINS_DELETE })
      const [why] = (await gate.view(VIEWER)).explain('delete_all').reasons
      return { holds: why?.code === 'policy_denied', saw: `${why?.code} by ${why?.layer}` }
    },
    async caller() {
      const { agent, witness } = createWorld(scripted(DELETES), { policy: ADMINS_DELETE })
      const ended = await rejectionCode(agent.invoke(HELLO, forged()))
      const { holds, saw } = ranNot(witness)
      return { holds: holds && ended === 'caller_untrusted', saw: `${saw}; the request ended with ${ended}` }
    },
  },
})
