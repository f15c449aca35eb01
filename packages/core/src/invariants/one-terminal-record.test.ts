import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { TERMINAL_EVENTS } from '../ports.ts'
import { chaosArbitrary, unleash } from '../testing/chaos.ts'
import { runs } from '../testing/worlds.ts'

const STATUSES: ReadonlySet<string> = new Set(['done', 'refused', 'waiting', 'failed'])

describe('every attempt, whatever fails and whenever it is stopped', () => {
  it('leaves exactly one terminal record, and answers with a value', async () => {
    await fc.assert(
      fc.asyncProperty(chaosArbitrary, async (chaos) => {
        const { audit, settled, callIds, ran } = await unleash(chaos)
        for (const result of settled) {
          assert.equal(result.status, 'fulfilled')
          if (result.status !== 'fulfilled') continue
          assert.ok(STATUSES.has(result.value.status))
          assert.equal(typeof result.value.text, 'string')
        }
        for (const callId of callIds) {
          const records = audit.records.filter(({ tool_call_id }) => tool_call_id === callId)
          const ends = records.filter(({ event }) => TERMINAL_EVENTS.has(event))
          assert.equal(ends.length, 1, `${callId} has ${ends.map(({ event }) => event).join(', ')}`)
          assert.ok(records.filter(({ event }) => event === 'tool_call').length <= 1)
          // One that was recorded too late comes after the refusal that says so.
          if (chaos.parts.recordCall !== 'too late') assert.equal(records.at(-1), ends[0])
        }
        assert.equal(new Set(ran).size, ran.length)
      }),
      runs(120),
    )
  })

  it('runs no tool without its intent in the audit, nor more often than its limit and its approval allow', async () => {
    await fc.assert(
      fc.asyncProperty(chaosArbitrary, async (chaos) => {
        const { audit, ran } = await unleash(chaos)
        const intents = audit.records.filter(({ event }) => event === 'tool_call').map(({ tool_call_id }) => tool_call_id)
        if (chaos.parts.recordCall !== 'nonsense') for (const callId of ran) assert.ok(intents.includes(callId))
        assert.ok(ran.length <= (chaos.asks ? 1 : 2), `ran ${ran.length} times`)
      }),
      runs(80),
    )
  })

  it('never runs a tool whose call was refused', async () => {
    await fc.assert(
      fc.asyncProperty(chaosArbitrary, async (chaos) => {
        const { settled, callIds, ran } = await unleash(chaos)
        for (const [i, result] of settled.entries()) {
          if (result.status !== 'fulfilled') continue
          const isRun = result.value.status === 'done' || result.value.status === 'failed'
          assert.equal(ran.includes(callIds[i] as string), isRun)
        }
      }),
      runs(80),
    )
  })
})
