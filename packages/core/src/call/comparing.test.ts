import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryHistories } from '../memory/histories.ts'
import { defineTool } from '../tools/tool.ts'
import type { CallRequest } from './attempt.ts'
import { isShownWhole } from './approvals.ts'
import { raiseLabels } from './history.ts'

const VERA = { user: 'vera', tenant: 'acme' }
const COMPARING = { kind: 'compare', approval: 'a1', by: 'ann' } as const

const read = defineTool({
  namespace: 'files',
  name: 'read',
  execute: (_, call) => {
    void raiseLabels(call, ['private'])
    return 'what is there'
  },
})
const write = defineTool({ namespace: 'files', name: 'write', execute: () => 'written' })
const send = defineTool({ namespace: 'mail', name: 'send', execute: () => 'sent' })

function setUp(options: GateOptions = {}) {
  const audit = memoryAudit()
  const histories = memoryHistories()
  const gate: Gate = createGate({ tools: [read, write, send], audit, history: { store: histories }, ...options })
  const call = async (request: Partial<CallRequest>) => (await gate.view(VERA)).call({ tool: 'files:read', ...request })
  const compare = async (request: Partial<CallRequest> = {}) => call({ as: COMPARING, ...request })
  return { gate, audit, call, compare }
}

const TAINTED = { deny: [{ match: 'mail:send', when: "'untrusted' in run.labels || 'private' in run.labels" }] }

describe('a call by which a person reads what another call would change', () => {
  it('is recorded as read for that person and approval', async () => {
    const { audit, compare } = setUp()
    const outcome = await compare()
    assert.equal(outcome.status === 'done' && outcome.output, 'what is there')
    const fields = audit.records.map(({ event, purpose, approval_id: id, detail, user_id: user }) => [
      event,
      purpose,
      id,
      detail,
      user,
    ])
    const detail = 'read for ann, who decides the approval'
    assert.deepEqual(fields, [
      ['tool_call', 'compare', 'a1', detail, 'vera'],
      ['tool_result', 'compare', 'a1', detail, 'vera'],
    ])
  })

  it('takes no limit, and is not held up by one', async () => {
    const { call, compare } = setUp({ limits: 'files:read:1/60' })
    for (let i = 0; i < 3; i++) assert.equal((await compare()).status, 'done')
    assert.equal((await call({})).status, 'done')
    assert.equal((await call({})).status, 'refused')
    assert.equal((await compare()).status, 'done')
  })

  it('leaves nothing in the history, neither its labels nor its call', async () => {
    const { gate, call, compare } = setUp({ policy: TAINTED, labels: { private: [] } })
    assert.equal((await compare()).status, 'done')
    assert.equal(await gate.histories.read(VERA, undefined), undefined)
    assert.equal((await call({ tool: 'mail:send' })).status, 'done')
    assert.equal((await compare()).status, 'done')
    const [raised] = [(await gate.histories.read(VERA, undefined))?.labels.map(({ label }) => label)]
    assert.deepEqual(raised, ['untrusted'], 'of the mail alone')
    assert.equal((await call({})).status, 'done')
    assert.equal((await call({ tool: 'mail:send' })).status, 'refused')
  })

  it('is decided by what the run has done, and strictly where that is not known', async () => {
    const deny = [{ match: 'files:read', when: "'untrusted' in run.labels" }]
    const { call, compare } = setUp({ policy: { deny }, labels: { trusted: ['files:write'] } })
    assert.equal((await compare()).status, 'refused', 'nothing is known')
    await call({ tool: 'files:write' })
    await call({ tool: 'files:read' })
    assert.equal((await compare()).status, 'refused', 'the run has read')
    const other = setUp({ policy: { deny }, labels: { trusted: ['files:*'] } })
    await other.call({ tool: 'files:read' })
    assert.equal((await other.compare()).status, 'done')
  })

  it('is refused where the caller would be, and where a person would have to approve it', async () => {
    const denied = setUp({ policy: { deny: ['files:read'] } })
    assert.equal((await denied.compare()).status, 'refused')
    const asked = setUp({ policy: { ask: ['files:read'] } })
    assert.equal((await asked.compare()).status, 'refused')
    assert.deepEqual(await asked.gate.approvals.list(), [])
  })

  it('counts for no clause, and calls hooks only before', async () => {
    const told: string[] = []
    const hooks = {
      beforeToolCall: () => void told.push('before'),
      afterToolCall: () => void told.push('after'),
    }
    const { gate, compare } = setUp({ policy: { allow: ['files:*'] }, hooks })
    await compare()
    assert.deepEqual(told, ['before'])
    assert.deepEqual(
      gate.coverage().map(({ hits }) => hits),
      [0],
    )
  })

  it('goes with nothing that makes a call go on', async () => {
    const { compare } = setUp()
    await assert.rejects(compare({ spends: true }), /call\.as: must not compare with/)
    await assert.rejects(compare({ as: { kind: 'compare', approval: 'a1' } as never }), /call\.as\.by: must be a text/)
    await assert.rejects(compare({ as: { ...COMPARING, bye: 1 } as never }), /bye: unknown field/)
  })
})

describe('an approval', () => {
  it('keeps who asked and where, as the host names them', async () => {
    const { gate, call } = setUp({ policy: { ask: ['files:write'] } })
    await call({ tool: 'files:write', asker: 'a key' })
    const [approval] = await gate.approvals.list()
    assert.deepEqual(approval?.asker, { id: 'a key' })
  })

  it('is shown whole unless something in its input is masked', async () => {
    const { gate, call } = setUp({ policy: { ask: ['files:write'] } })
    await call({ tool: 'files:write', input: { path: 'a', content: 'b\n"\t' } })
    await call({ tool: 'files:write', input: { path: 'a', password: 'hunter2hunter2' } })
    const shown = (await gate.approvals.list()).map(isShownWhole)
    assert.deepEqual(shown, [false, true])
  })
})
