import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { memoryHistories } from '../memory/histories.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { parseSelector } from '../tools/selector.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { CallHistory } from './call-history.ts'
import type { CallPattern, HistoryUse, HistoryUses } from './facts.ts'
import { Histories } from './histories.ts'
import { parseLabels } from './labels.ts'

const NO_GROUPS = new Map()
const HOUR_MS = 3_600_000
const VERA = { user: 'vera', tenant: 'acme' }

const read = defineTool({ namespace: 'web', name: 'fetch' })
const contacts = defineTool({ namespace: 'contacts', name: 'find' })
const check = defineTool({ namespace: 'fraud', name: 'check' })

function pattern(event: CallPattern['event'], tool: string, fields: readonly string[] = []): CallPattern {
  return { event, selector: parseSelector(tool), fields, key: `${event} ${tool} ${fields.join(' ')}` }
}

const PAID = pattern('began', 'refunds:pay', ['input.order'])
const CHECKED = pattern('called', 'fraud:check', ['input.order', 'output.ok'])

const NOTHING: HistoryUse = { readsRun: false, readsOrigin: false, patterns: [], labels: [] }

function useOf(patterns: readonly CallPattern[] = [PAID, CHECKED]): HistoryUses {
  const enforced = { readsRun: true, readsOrigin: false, patterns, labels: ['untrusted', 'private'] }
  return { enforced, shadows: NOTHING }
}

describe('Histories', () => {
  let clock = manualClock()
  let store = memoryHistories()
  let hasBegun = false
  let histories: Histories

  function createHistories(maxBytes = 64 * 1024): Histories {
    const made = new Histories({
      store,
      clock,
      lifetimes: { calledMs: HOUR_MS, labelMs: 24 * HOUR_MS },
      keepMs: 24 * HOUR_MS,
      bounds: { maxBytes, origins: {} },
      labels: () => parseLabels({ trusted: ['contacts:*', 'fraud:*'], private: ['contacts:*'] }, NO_GROUPS),
      inTime: (answer) => answer,
      onActive: () => hasBegun,
    })
    return made
  }

  beforeEach(() => {
    clock = manualClock()
    store = memoryHistories()
    hasBegun = false
    histories = createHistories()
    histories.use(useOf())
  })

  async function open(run?: { id: string; history?: string; resumed?: boolean }, caller = VERA, wasKept = true) {
    return new CallHistory(histories, await histories.of(caller, run, wasKept, true), undefined)
  }

  async function callOf(
    tool: Tool,
    input: object = {},
    output: unknown = {},
    run?: { id: string },
  ): Promise<CallHistory> {
    const call = await open(run)
    await call.begin(tool, input, true, () => undefined)
    await call.end(tool, input, { done: true, output })
    return call
  }

  it('raises the labels of a call when it begins, and not for itself', async () => {
    const call = await open({ id: 'r' })
    await call.begin(read, {}, true, () => undefined)
    assert.deepEqual(call.facts()?.labels, [])
    assert.deepEqual((await open({ id: 'r' })).facts()?.labels, ['untrusted'])
    assert.deepEqual((await open({ id: 'other' })).facts()?.labels, [])
  })

  it('keeps trust and secrecy apart', async () => {
    await callOf(contacts, {}, {}, { id: 'r' })
    assert.deepEqual((await open({ id: 'r' })).facts()?.labels, ['private'])
  })

  it('raises nothing for a call that is refused', async () => {
    const call = await open({ id: 'r' })
    assert.equal(await call.begin(read, {}, true, () => 'refused'), 'refused')
    assert.deepEqual((await open({ id: 'r' })).facts()?.labels, [])
  })

  it('knows which calls have begun and which have been done, by exactly the fields that are asked for', async () => {
    await callOf(check, { order: '7' }, { ok: true })
    await callOf(check, { order: '8' }, { ok: false })
    const facts = (await open()).facts()
    const matched = [
      ['7', true],
      ['8', true],
      [7, true],
      ['7', 'true'],
    ].map((values) => facts?.matched(CHECKED, values))
    assert.deepEqual(matched, [true, false, false, false])
  })

  it('forgets what was called after an hour, and labels after a day, for a caller without a run', async () => {
    await callOf(check, { order: '7' }, { ok: true })
    await callOf(read)
    clock.advance(HOUR_MS)
    assert.equal((await open()).facts()?.matched(CHECKED, ['7', true]), false)
    clock.advance(22 * HOUR_MS)
    assert.deepEqual((await open()).facts()?.labels, ['untrusted'])
    clock.advance(HOUR_MS)
    assert.deepEqual((await open()).facts()?.labels, [])
  })
})
