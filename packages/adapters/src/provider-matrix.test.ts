import { createGate, defineTool, type GateOptions } from '@toolgate/core'
import { describeMatrixRow, installedVersion, type MatrixRow, type Observation } from './testing/matrix.ts'
import { PROVIDER_LOOPS, type ProviderLoop, type Script } from './testing/provider-loops.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER, type Witness } from './testing/world.ts'

const NAMES = ['alpha', 'delete_all', 'search']
const DELETES: Script = [[{ name: 'delete_all' }]]
const SEARCHES: Script = [Array.from({ length: 5 }, () => ({ name: 'search' }))]

function setUp(options: GateOptions = {}) {
  const witness = createWitness()
  const audit = createTestAudit()
  const tools = NAMES.map((name) => defineTool({ name, execute: witness.body(name) }))
  return { gate: createGate({ tools, policy: ADMINS_DELETE, audit, ...options }), audit, witness }
}

/** What ran of `delete_all`, which should not. */
function ranNot({ ran }: Witness): Observation {
  const did = ran.includes('delete_all')
  return { holds: !did, saw: did ? 'delete_all ran' : 'delete_all did not run' }
}

function sentNot(sent: readonly (readonly string[])[]): Observation {
  const hidden = sent.flat().includes('delete_all')
  return { holds: !hidden, saw: hidden ? 'delete_all was sent' : `sent: ${sent[0]?.join(', ')}` }
}

/** A host that sends some of its tools, and looks up what the model names among all. */
function without(loop: ProviderLoop): MatrixRow['without'] {
  const bare = () => {
    const witness = createWitness()
    const all = new Map(NAMES.map((name) => [name, witness.body(name)]))
    return { witness, tools: { shown: ['alpha', 'search'], all } }
  }
  return {
    see: async () => sentNot((await loop.runBare(bare().tools, DELETES)).sent),
    async run() {
      const { witness, tools } = bare()
      await loop.runBare(tools, DELETES)
      return ranNot(witness)
    },
    resume: undefined,
    approve: undefined,
    audit: undefined,
    limit: undefined,
    explain: undefined,
    caller: undefined,
  }
}

function withToolgate(loop: ProviderLoop): MatrixRow['with'] {
  return {
    see: async () => sentNot((await loop.run({ gate: setUp().gate, caller: VIEWER }, DELETES)).sent),
    async run() {
      const { gate, witness } = setUp()
      await loop.run({ gate, caller: VIEWER }, DELETES)
      return ranNot(witness)
    },
    async resume() {
      const { gate, witness } = setUp({ policy: { ask: ['delete_all'] } })
      await loop.run({ gate, caller: VIEWER }, DELETES)
      for (const { id } of await gate.approvals.list({ status: 'pending' }))
        await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
      gate.setPolicy({ deny: ['delete_all'] })
      await loop.run({ gate, caller: VIEWER }, DELETES)
      return ranNot(witness)
    },
    async approve() {
      const { gate, witness } = setUp({ policy: { ask: ['delete_all'] } })
      // The messages say what they like: the second request of the run is made as if somebody had said yes.
      await loop.run({ gate, caller: VIEWER }, [...DELETES, ...DELETES])
      return ranNot(witness)
    },
    async audit() {
      const { gate, audit } = setUp()
      await loop.run({ gate, caller: VIEWER }, DELETES)
      return { holds: audit.attempts().length === 1, saw: audit.attempts().join('; ') }
    },
    async limit() {
      const { gate, witness } = setUp({ limits: 'search:2/60' })
      await loop.run({ gate, caller: VIEWER }, SEARCHES)
      return { holds: witness.ran.length === 2, saw: `${witness.ran.length} of 5 calls ran with a limit of 2` }
    },
    async explain() {
      const { gate } = setUp()
      const view = await gate.view(VIEWER)
      const [first] = view.explain('delete_all').reasons
      return { holds: first?.code === 'policy_denied', saw: `${first?.code} by ${first?.layer}` }
    },
    async caller() {
      const { gate, witness } = setUp()
      await loop.run({ gate, caller: VIEWER }, [[{ name: 'delete_all', input: { caller: ADMIN } }]])
      return ranNot(witness)
    },
  }
}

const ROWS: readonly (readonly [name: string, framework: string, packageName: string, loop: string])[] = [
  ['openai', '`openai`, own loop', 'openai', 'OpenAI Responses'],
  ['anthropic', '`@anthropic-ai/sdk`, own loop', '@anthropic-ai/sdk', 'Anthropic Messages'],
  ['gemini', '`@google/genai`, own loop', '@google/genai', 'Gemini'],
]

for (const [name, framework, packageName, loopName] of ROWS) {
  const loop = PROVIDER_LOOPS.find((one) => one.name === loopName) as ProviderLoop
  describeMatrixRow(name, {
    framework,
    version: installedVersion(packageName),
    without: without(loop),
    with: withToolgate(loop),
  })
}
