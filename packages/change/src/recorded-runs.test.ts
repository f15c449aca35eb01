import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Gate, memoryAudit, type Policies } from '@toolgate/core'
import { raiseLabels } from '@toolgate/core/call'
import type { AuditRecord, RunOfCall } from '@toolgate/core/audit'
import { whatIf } from './what-if.ts'

const VERA = { user: 'vera' }
const LABELS = { trusted: ['mail:*', 'agents:*', 'files:*'], private: ['files:*'], secret: [] }
const BY_LABEL = { name: 'new', deny: [{ id: 'no-mail', match: 'mail:*', when: "'untrusted' in run.labels" }] }
/** In force: a rule about runs that says nothing of mail. */
const READING = { name: 'old', deny: [{ match: 'files:*', when: "'untrusted' in run.labels" }] }

/** Makes calls under rules, of which `agents:ask` has another run read the web and send a mail. */
async function record(
  policy: Policies,
  make: (call: (tool: string, run?: RunOfCall) => Promise<unknown>) => Promise<unknown>,
) {
  const audit = memoryAudit()
  const nested = async () => {
    await call('web:get', { id: 'nested-1' })
    return call('mail:send', { id: 'nested-2' })
  }
  const execute = { 'web:get': () => 'text', 'agents:ask': nested } as Record<string, () => unknown>
  const tools = ['web:get', 'mail:send', 'files:read', 'agents:ask', 'crm:find'].map((id) => {
    const [namespace = '', name = ''] = id.split(':')
    return defineTool({
      namespace,
      name,
      execute: id === 'crm:find' ? async (_, own) => raiseLabels(own, ['secret']) : (execute[id] ?? (() => 'done')),
    })
  })
  const gate: Gate = createGate({ tools, policy, labels: LABELS, audit })
  async function call(tool: string, run?: RunOfCall): Promise<unknown> {
    return (await gate.view(VERA)).call({ tool, input: {}, ...(run && { run }) })
  }
  await make(call)
  await gate.close()
  const judge = (records: readonly AuditRecord[], after: Policies, labels: Record<string, string[]> = LABELS) =>
    whatIf({
      before: { catalog: tools, callers: [VERA], policy, labels: LABELS },
      after: { catalog: tools, callers: [VERA], policy: after, labels },
      records,
    })
  return { records: [...audit.records], judge }
}

describe('a recorded run that shares the history of another', () => {
  it('is judged by all that has happened in that history', async () => {
    const { records, judge } = await record({ name: 'old' }, async (call) => {
      await call('web:get', { id: 'root' })
      await call('mail:send', { id: 'child', history: 'root' })
      await call('mail:send', { id: 'other' })
    })
    assert.deepEqual(
      records.filter(({ event }) => event === 'tool_call').map(({ run_history: shared }) => shared),
      [undefined, '["run","root"]', undefined],
    )
    const found = await judge(records, BY_LABEL)
    assert.deepEqual([found.changed, found.unknown, found.rows[0]?.count], [1, 0, 1])
  })

  it('is found where it began in a call, of a run or of a caller without one', async () => {
    const { records, judge } = await record(READING, async (call) => {
      await call('agents:ask', { id: 'root' })
      await call('agents:ask')
    })
    const shared = records.flatMap(({ event, run_history: one }) => (event === 'tool_call' && one ? [one] : []))
    assert.deepEqual(shared, ['["run","root"]', '["run","root"]', '["caller","vera",null]', '["caller","vera",null]'])
    const found = await judge(records, BY_LABEL)
    assert.deepEqual([found.changed, found.unknown], [2, 0])
  })

  it('is unknown, by rule, where it may have begun in a call and no rule in force read runs', async () => {
    const { records, judge } = await record({ name: 'old' }, async (call) => {
      await call('agents:ask', { id: 'root' })
      await call('mail:send', { id: 'later' })
    })
    const found = await judge(records, BY_LABEL)
    assert.deepEqual([found.changed, found.unknown, found.unknownParts.run], [0, 1, 1])
    assert.deepEqual(found.rules, [{ rule: 'new#no-mail', changed: 0, unknown: 1 }])
  })
})

describe('the labels that were recorded of a run', () => {
  const inForce = { name: 'old', deny: [{ match: 'mail:*', when: "'secret' in run.labels" }, ...READING.deny] }

  /** The records of a replica whose audit has only some of the calls of a run. */
  async function withoutWeb() {
    const { records, judge } = await record(inForce, async (call) => {
      await call('files:read', { id: 'first' })
      await call('web:get', { id: 'r' })
      await call('mail:send', { id: 'r' })
      await call('crm:find', { id: 'r' })
    })
    const seen = records.filter(({ tool }) => tool !== 'web:get')
    assert.deepEqual(
      seen.flatMap(({ event, run_labels: labels }) => (event === 'tool_call' && labels ? [labels] : [])),
      ['untrusted'],
    )
    return { seen, judge }
  }

  it('count where the calls that raised them were not recorded', async () => {
    const { seen, judge } = await withoutWeb()
    const found = await judge(seen, { ...BY_LABEL, deny: [...BY_LABEL.deny, ...inForce.deny] })
    assert.deepEqual([found.changed, found.unknown], [1, 0])
  })

  it('say that calls are missing: what else such a run has done is unknown', async () => {
    const { seen, judge } = await withoutWeb()
    const began = { id: 'after-files', match: 'crm:*', when: "run.began('files:*')" }
    const found = await judge(seen, { name: 'new', deny: [began, ...inForce.deny] })
    assert.deepEqual(
      [found.changed, found.unknown, found.rules],
      [0, 1, [{ rule: 'new#after-files', changed: 0, unknown: 1 }]],
    )
    // Other rules about labels do not turn what was recorded into what is known.
    const other = await judge(seen, BY_LABEL, { ...LABELS, more: [] })
    assert.deepEqual([other.changed, other.unknown], [0, 1])
  })

  it('have those that a server has raised, which no rule gives its tool', async () => {
    const { records, judge } = await record(READING, async (call) => {
      await call('crm:find', { id: 'r' })
      await call('mail:send', { id: 'r' })
    })
    const found = await judge(records, { name: 'new', deny: [{ match: 'mail:*', when: "'secret' in run.labels" }] })
    assert.deepEqual([found.changed, found.unknown], [1, 0])
  })
})
