import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after } from 'node:test'
import { createSdkMcpServer, type HookCallback, type Options, tool } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent, guard } from '@toolgate/adapters/claude-agent'
import { createGate } from '@toolgate/core'
import { describeMatrixRow, type Observation } from '../../packages/adapters/src/testing/matrix.ts'
import {
  ADMIN,
  createTestAudit,
  createWitness,
  VIEWER,
  type Witness,
} from '../../packages/adapters/src/testing/world.ts'
import { createPlace, LATE, type Place, type Ran, TOO_LATE, use } from './support/query.ts'
import { createWorld } from './support/world.ts'

const places: Place[] = []
after(() => {
  for (const place of places) place.close()
})

function newPlace(): Place {
  const place = createPlace()
  places.push(place)
  return place
}

const DELETE = 'mcp__gate__delete_all'
const NAMES = ['alpha', 'delete_all', 'search']
/** What the harness itself runs, for what only that can show. */
const LOGS = use('Bash', { command: 'echo > delete_all' })

function ranNot({ ran }: Pick<Witness, 'ran'>): Observation {
  const did = ran.includes('delete_all')
  return { holds: !did, saw: did ? 'delete_all ran' : 'delete_all did not run' }
}

function ranIn(place: Place): Pick<Witness, 'ran'> {
  return { ran: place.wrote('delete_all') ? ['delete_all'] : [] }
}

function sentNot({ requests }: Ran): Observation {
  const sent = requests[0]?.tools.map((name) => name.slice('mcp__gate__'.length)) ?? []
  const hidden = sent.includes('delete_all')
  return { holds: !hidden, saw: hidden ? 'delete_all was sent' : `sent: ${sent.join(', ')}` }
}

/** The SDK's own: a server of all tools, of which one is taken out of the model's context. */
function createBare() {
  const witness = createWitness()
  const tools = NAMES.map((name) =>
    tool(name, name, {}, async () => ({ content: [{ type: 'text', text: witness.body(name)() }] })),
  )
  const options = (): Options => ({
    tools: [],
    allowedTools: NAMES.map((name) => `mcp__gate__${name}`),
    mcpServers: { gate: createSdkMcpServer({ name: 'gate', tools }) },
  })
  return { witness, options, hidden: (): Options => ({ ...options(), disallowedTools: [DELETE] }) }
}

const answering =
  (permissionDecision: 'defer' | 'deny'): HookCallback =>
  async () => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision } })

function withHook(hook: HookCallback): Options {
  return {
    tools: ['Bash'],
    permissionMode: 'acceptEdits',
    hooks: { PreToolUse: [{ onFailure: 'block', hooks: [hook] }] },
  }
}

function createApprovals() {
  const audit = createTestAudit()
  const gate = createGate({ tools: fromClaudeAgent(['Bash']), policy: { ask: ['Bash'] }, audit })
  const options = async (): Promise<Options> => ({
    permissionMode: 'acceptEdits',
    ...(await guard(gate, VIEWER, { waiting: 'defer' })),
  })
  return { gate, options }
}

const MANIFEST = path.join(import.meta.dirname, 'node_modules/@anthropic-ai/claude-agent-sdk/package.json')

describeMatrixRow('claude-agent', {
  framework: 'Claude Agent SDK',
  version: (JSON.parse(readFileSync(MANIFEST, 'utf8')) as { version: string }).version,
  without: {
    see: async () => sentNot(await newPlace().run([], createBare().hidden())),
    async run() {
      const { witness, hidden } = createBare()
      await newPlace().run([[use(DELETE)]], hidden())
      return ranNot(witness)
    },
    async resume() {
      const { witness, options, hidden } = createBare()
      const place = newPlace()
      const hooks = { PreToolUse: [{ hooks: [answering('defer')] }] }
      const { session } = await place.run([[use(DELETE)]], { ...options(), hooks })
      await place.run([], { ...hidden(), resume: session as string })
      return ranNot(witness)
    },
    async approve() {
      const place = newPlace()
      const { session } = await place.run([[LOGS]], withHook(answering('defer')))
      // Nobody has approved it, and the hook says so: but on a busy machine it is not asked.
      await place.run([], { ...withHook(answering('deny')), ...TOO_LATE, resume: session as string })
      return ranNot(ranIn(place))
    },
    async audit() {
      const { hidden } = createBare()
      const { result } = await newPlace().run([[use(DELETE)]], hidden())
      const denials = result?.permission_denials.map(({ tool_name }) => tool_name) ?? []
      return { holds: denials.length > 0, saw: `permission_denials: ${denials.join(', ') || 'none'}` }
    },
    limit: undefined,
    explain: undefined,
    caller: undefined,
  },
  with: {
    see: async () => sentNot(await newPlace().run([], await guard(createWorld().gate, VIEWER))),
    async run() {
      const { gate, witness } = createWorld()
      await newPlace().run([[use(DELETE)]], await guard(gate, VIEWER))
      return ranNot(witness)
    },
    async resume() {
      const { gate, options } = createApprovals()
      const place = newPlace()
      const { session } = await place.run([[LOGS]], await options())
      for (const { id } of await gate.approvals.list({ status: 'pending' }))
        await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
      const seen = await options()
      gate.setPolicy({ deny: ['Bash'] })
      await place.run([], { ...(await options()), resume: session as string })
      await place.run([], { ...seen, resume: session as string })
      return ranNot(ranIn(place))
    },
    async approve() {
      const { options } = createApprovals()
      const place = newPlace()
      const { session } = await place.run([[LOGS]], await options())
      await place.run([], { ...(await options()), ...LATE, resume: session as string })
      return ranNot(ranIn(place))
    },
    async audit() {
      const { gate, audit } = createWorld()
      await newPlace().run([[use(DELETE)]], await guard(gate, VIEWER))
      return { holds: audit.attempts().length === 1, saw: audit.attempts().join('; ') }
    },
    async limit() {
      const { gate, witness } = createWorld({ limits: 'search:2/60' })
      const calls = [1, 2, 3, 4, 5].map((i) => use('mcp__gate__search', { i }, `toolu_${i}`))
      await newPlace().run([calls], await guard(gate, VIEWER))
      return { holds: witness.ran.length === 2, saw: `${witness.ran.length} of 5 calls ran with a limit of 2` }
    },
    async explain() {
      const [first] = (await createWorld().gate.view(VIEWER)).explain('delete_all').reasons
      return { holds: first?.code === 'policy_denied', saw: `${first?.code} by ${first?.layer}` }
    },
    async caller() {
      const { gate, witness } = createWorld()
      await newPlace().run([[use(DELETE, { caller: ADMIN })]], await guard(gate, VIEWER))
      return ranNot(witness)
    },
  },
})
