import { createRequire } from 'node:module'
import { generateText, type ModelMessage } from 'ai'
import { applyApprovals, guard } from '../ai-sdk.ts'
import { answer, createAiSdkWorld, forge, stopWhen } from '../testing/ai-sdk-world.ts'
import { describeMatrixRow, type Observation } from '../testing/matrix.ts'
import { mockModel } from '../testing/mock-model.ts'
import { ADMIN, VIEWER } from '../testing/world.ts'

const DELETES = [{ name: 'delete_all' }]
const prompt = 'p'
const ASKS = { policy: { ask: ['delete_all'] } }
const messages = [{ role: 'user', content: 'p' }] as const
const { version } = createRequire(import.meta.url)('ai/package.json') as { version: string }

const saw = (holds: boolean, yes: string, no: string): Observation => ({ holds, saw: holds ? yes : no })
const ranNothing = (ran: readonly string[]) => saw(ran.length === 0, 'nothing ran', `${ran.join(', ')} ran`)
const sentOnly = (sent: readonly (readonly string[])[]) =>
  saw(!sent.flat().includes('delete_all'), `sent ${sent[0]?.join(', ')}`, 'delete_all was sent')

const tenCalls = Array.from({ length: 10 }, (_, i) => ({ name: 'search', id: `call-${i}` }))

describeMatrixRow('ai-sdk', {
  framework: 'AI SDK',
  version,
  without: {
    async see() {
      const { tools } = createAiSdkWorld()
      const model = mockModel(['Hm.'])
      await generateText({ model, prompt, stopWhen, tools, activeTools: ['alpha', 'search'] })
      return sentOnly(model.sent())
    },
    async run() {
      const { tools, witness } = createAiSdkWorld()
      const model = mockModel([DELETES, 'Hm.'])
      await generateText({ model, prompt, stopWhen, tools, activeTools: ['search'] })
      return ranNothing(witness.ran)
    },
    async resume() {
      const { tools, witness } = createAiSdkWorld()
      const options = {
        model: mockModel([DELETES, 'Hm.']),
        stopWhen,
        tools,
        toolApproval: { delete_all: 'user-approval' } as const,
      }
      const { responseMessages } = await generateText({ ...options, messages: [...messages] })
      await generateText({
        ...options,
        messages: answer([...messages, ...responseMessages], true),
        activeTools: ['search'],
      })
      return ranNothing(witness.ran)
    },
    async approve() {
      const { tools, witness } = createAiSdkWorld()
      const toolApproval = { delete_all: 'user-approval' } as const
      await generateText({ model: mockModel(['Hm.']), messages: forge('delete_all'), stopWhen, tools, toolApproval })
      return ranNothing(witness.ran)
    },
    audit: undefined,
    limit: undefined,
    explain: undefined,
    caller: undefined,
  },
  with: {
    async see() {
      const { gate } = createAiSdkWorld()
      const model = mockModel(['Hm.'])
      await generateText({ model, prompt, stopWhen, ...(await guard(gate, VIEWER)) })
      return sentOnly(model.sent())
    },
    async run() {
      const { gate, witness } = createAiSdkWorld()
      await generateText({ model: mockModel([DELETES, 'Hm.']), prompt, stopWhen, ...(await guard(gate, VIEWER)) })
      return ranNothing(witness.ran)
    },
    async resume() {
      const { gate, witness } = createAiSdkWorld(ASKS)
      const model = mockModel([DELETES, 'Hm.'])
      const paused = await generateText({ model, messages: [...messages], stopWhen, ...(await guard(gate, VIEWER)) })
      const approved = answer([...messages, ...paused.responseMessages], true)
      await applyApprovals(gate, VIEWER, approved)
      gate.setPolicy({ deny: ['delete_all'] })
      await generateText({ model, messages: approved, stopWhen, ...(await guard(gate, VIEWER)) })
      return ranNothing(witness.ran)
    },
    async approve() {
      const { gate, witness } = createAiSdkWorld(ASKS)
      const model = mockModel(['Hm.'])
      await generateText({ model, messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER)) })
      return ranNothing(witness.ran)
    },
    async audit() {
      const { gate, audit } = createAiSdkWorld()
      await generateText({ model: mockModel([DELETES, 'Hm.']), prompt, stopWhen, ...(await guard(gate, VIEWER)) })
      const [record = 'no record'] = audit.attempts()
      return saw(record === 'delete_all tool_blocked policy_denied', record, record)
    },
    async limit() {
      const { gate, witness } = createAiSdkWorld({ limits: 'search:3/60' })
      await generateText({ model: mockModel([tenCalls, 'Hm.']), prompt, stopWhen, ...(await guard(gate, VIEWER)) })
      const many = `${witness.ran.length} of 10 ran`
      return saw(witness.ran.length === 3, many, many)
    },
    async explain() {
      const { gate } = createAiSdkWorld()
      const [reason] = (await gate.view(VIEWER)).explain('delete_all').reasons
      return saw(reason?.code === 'policy_denied', reason?.text ?? '', 'nothing')
    },
    async caller() {
      const { gate, witness } = createAiSdkWorld()
      const claim = { caller: ADMIN }
      const body = JSON.stringify({ messages: [{ ...messages[0], providerOptions: { claim } }], runtimeContext: claim })
      const sent = JSON.parse(body) as { messages: ModelMessage[]; runtimeContext: typeof claim }
      const model = mockModel([DELETES, 'Hm.'])
      await generateText({ model, ...sent, stopWhen, ...(await guard(gate, VIEWER)) })
      return ranNothing(witness.ran)
    },
  },
})
