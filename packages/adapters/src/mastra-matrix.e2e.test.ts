import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import type { Caller, GateOptions } from '@toolgate/core'
import { z } from 'zod'
import { pausedRun } from './mastra.ts'
import {
  callOf,
  contextOf,
  createAgent,
  createScene,
  createStored,
  createTools,
  serverContext,
} from './testing/mastra-scene.ts'
import {
  describeMatrixRow,
  installedVersion,
  type MatrixRow,
  type Observation,
  rejectionCode,
} from './testing/matrix.ts'
import { mockModel, type Turn } from './testing/mock-model.ts'
import { ADMIN, ADMINS_DELETE, createWitness, VIEWER, type Witness } from './testing/world.ts'

const DELETES: readonly Turn[] = [[callOf('delete_all')], 'done']
const SEARCHES: readonly Turn[] = [Array.from({ length: 5 }, (_, i) => callOf('search', {}, `call-${i}`)), 'done']
const ASKS: Pick<GateOptions, 'policy'> = { policy: { ask: ['delete_all'] } }
const AS_VIEWER = () => ({ requestContext: contextOf(VIEWER) })

function ranNot({ ran }: Witness): Observation {
  const did = ran.includes('delete_all')
  return { holds: !did, saw: did ? 'delete_all ran' : 'delete_all did not run' }
}

function sentNot(sent: readonly (readonly string[])[]): Observation {
  const hidden = sent.flat().includes('delete_all')
  return { holds: !hidden, saw: hidden ? 'delete_all was sent' : `sent: ${sent[0]?.toSorted().join(', ')}` }
}

/** A request whose body says that an admin asks, as Mastra's server hands it to an agent. */
const forged = () => ({ requestContext: serverContext(JSON.stringify({ requestContext: { caller: ADMIN } })) })

/** Mastra's own means: tools chosen per request, `requireApproval` on the tool. */
function createPlain(turns: readonly Turn[]) {
  const witness = createWitness()
  const body = witness.body('delete_all')
  const delete_all = createTool({
    id: 'delete_all',
    description: 'Deletes.',
    inputSchema: z.object({}),
    requireApproval: true,
    execute: () => Promise.resolve(body()),
  })
  const { search, alpha } = createTools(witness)
  const model = mockModel(turns)
  const agent = new Agent({
    id: 'plain',
    name: 'plain',
    instructions: 'Help.',
    model: model as unknown as MastraModelConfig,
    tools: ({ requestContext }) =>
      requestContext.get('hidden') === true ? { search, alpha } : { search, alpha, delete_all },
  })
  void new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false })
  return { witness, model, agent }
}

function hiddenFromViewer() {
  const { requestContext } = AS_VIEWER()
  requestContext.set('hidden', true)
  return { requestContext }
}

/** Approves the waiting call in Mastra, with more options for the resume. */
async function pauseAndApprove(plain: ReturnType<typeof createPlain>, resume: object): Promise<Observation> {
  const { runId, toolCallId } = pausedRun(await plain.agent.generate('go', AS_VIEWER()))
  await plain.agent.approveToolCallGenerate({ runId, toolCallId, ...AS_VIEWER(), ...resume })
  return ranNot(plain.witness)
}

const without: MatrixRow['without'] = {
  async see() {
    const { agent, model } = createPlain(['done'])
    await agent.generate('go', hiddenFromViewer())
    return sentNot(model.sent())
  },
  async run() {
    const { agent, witness } = createPlain(DELETES)
    await agent.generate('go', hiddenFromViewer())
    return ranNot(witness)
  },
  resume: () => pauseAndApprove(createPlain(DELETES), hiddenFromViewer()),
  approve: () => pauseAndApprove(createPlain(DELETES), {}),
  audit: undefined,
  limit: undefined,
  explain: undefined,
  async caller() {
    const witness = createWitness()
    const { delete_all, ...others } = createTools(witness)
    const agent = new Agent({
      id: 'plain',
      name: 'plain',
      instructions: 'Help.',
      model: mockModel(DELETES) as unknown as MastraModelConfig,
      tools: ({ requestContext }) =>
        (requestContext.get('caller') as Caller).roles?.includes('admin') ? { ...others, delete_all } : others,
    })
    await agent.generate('go', forged())
    return ranNot(witness)
  },
}

/** Pauses, and returns the way to resume by Mastra alone. */
async function pause({ gate }: ReturnType<typeof createScene>) {
  const { agent } = createStored(gate, DELETES)
  const { runId, toolCallId } = pausedRun(await agent.generate('go', AS_VIEWER()))
  return () => agent.approveToolCallGenerate({ runId, toolCallId, ...AS_VIEWER() })
}

const withToolgate: MatrixRow['with'] = {
  async see() {
    const { agent, model } = createAgent(createScene().gate, ['done'])
    await agent.generate('go', AS_VIEWER())
    return sentNot(model.sent())
  },
  async run() {
    const { gate, witness } = createScene()
    await createAgent(gate, DELETES).agent.generate('go', AS_VIEWER())
    return ranNot(witness)
  },
  async resume() {
    const scene = createScene(ASKS)
    const resume = await pause(scene)
    const [approval] = await scene.gate.approvals.list({ status: 'pending' })
    await scene.gate.approvals.decide(VIEWER, approval?.id ?? '', { decision: 'approve' })
    scene.gate.setPolicy(ADMINS_DELETE)
    await resume()
    return ranNot(scene.witness)
  },
  async approve() {
    const scene = createScene(ASKS)
    const resume = await pause(scene)
    await resume()
    return ranNot(scene.witness)
  },
  async audit() {
    const { gate, audit } = createScene()
    await createAgent(gate, DELETES).agent.generate('go', AS_VIEWER())
    const saw = audit.attempts().join(', ')
    return { holds: saw === 'delete_all tool_blocked policy_denied', saw }
  },
  async limit() {
    const { gate, witness } = createScene({ limits: 'search:2/60' })
    await createAgent(gate, SEARCHES).agent.generate('go', AS_VIEWER())
    const { length } = witness.ran
    return { holds: length === 2, saw: `${length} of 5 calls ran with a limit of 2` }
  },
  async explain() {
    const view = await createScene().gate.view(VIEWER)
    const [reason] = view.explain('delete_all').reasons
    return { holds: reason?.code === 'policy_denied', saw: `${reason?.code} by ${reason?.layer}` }
  },
  async caller() {
    const { gate, witness } = createScene()
    const { agent } = createAgent(gate, DELETES)
    const ended = await rejectionCode(agent.generate('go', forged()))
    const { holds, saw } = ranNot(witness)
    return { holds: holds && ended === 'caller_untrusted', saw: `${saw}; the request ended with ${ended}` }
  },
}

describeMatrixRow('mastra', {
  framework: 'Mastra',
  version: installedVersion('@mastra/core'),
  without,
  with: withToolgate,
})
