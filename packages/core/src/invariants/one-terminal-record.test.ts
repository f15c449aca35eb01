import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { TERMINAL_EVENTS } from '../ports/ports.ts'
import { type Aftermath, type Chaos, chaosArbitrary, unleash } from '../../../testing/support/chaos.ts'
import { runs } from '../../../testing/src/runs.ts'

const STATUSES: ReadonlySet<string> = new Set(['done', 'refused', 'waiting', 'failed'])
/** On a busy machine what comes later may come after its deadline. */
const LATE: ReadonlySet<string> = new Set(['later', 'too late'])
/** Much of each is waiting, so that many at once cost little more than one. */
const AT_ONCE = 12

async function forAll(check: (chaos: Chaos, aftermath: Aftermath) => void | Promise<void>): Promise<void> {
  const several = fc.array(chaosArbitrary, { minLength: AT_ONCE, maxLength: AT_ONCE })
  await fc.assert(
    fc.asyncProperty(several, async (worlds) => {
      await Promise.all(worlds.map(async (chaos) => check(chaos, await unleash(chaos))))
    }),
    // Told as it is found: to make it smaller would take minutes, and each try has timers of its own.
    { ...runs(10), endOnFailure: true },
  )
}

describe('every attempt, whatever fails and whenever it is stopped', () => {
  it('leaves exactly one terminal record', async () => {
    await forAll((chaos, { audit, callIds }) => {
      for (const callId of callIds) {
        const records = audit.records.filter(({ tool_call_id }) => tool_call_id === callId)
        const ends = records.filter(({ event }) => TERMINAL_EVENTS.has(event))
        assert.equal(ends.length, 1, `${callId} has ${ends.map(({ event }) => event).join(', ')}`)
        assert.ok(records.filter(({ event }) => event === 'tool_call').length <= 1)
        // An intent that was recorded too late comes after the refusal that says so.
        if (!LATE.has(chaos.parts.recordCall)) assert.equal(records.at(-1), ends[0])
      }
    })
  })

  it('answers with a value and never throws', async () => {
    await forAll((_, { settled }) => {
      for (const result of settled) {
        assert.equal(result.status, 'fulfilled')
        if (result.status !== 'fulfilled') continue
        assert.ok(STATUSES.has(result.value.status))
        assert.equal(typeof result.value.text, 'string')
      }
    })
  })

  it('leaves one, too, where a person was asked first, and none where there was nobody to ask', async () => {
    await forAll((_, { audit, asked, ran }) => {
      for (const [askId, answer] of asked) {
        assert.equal(answer.status, 'fulfilled')
        const events = audit.records.flatMap(({ event, tool_call_id }) => (tool_call_id === askId ? [event] : []))
        const status = answer.status === 'fulfilled' ? answer.value?.status : undefined
        if (status !== undefined) assert.ok(['refused', 'waiting'].includes(status))
        assert.equal(events.length, status === undefined ? 0 : 1, `${askId} was ${status}, with ${events.join(', ')}`)
        assert.ok(events.every((event) => TERMINAL_EVENTS.has(event)))
        assert.ok(!ran.includes(askId))
      }
    })
  })

  it('runs its tool once at most, after its intent was recorded, and within the limit and the approval', async () => {
    await forAll((chaos, { audit, ran, settled, callIds, toolOf }) => {
      const calls = audit.records.filter(({ event }) => event === 'tool_call')
      const intents = new Set(calls.map(({ tool_call_id }) => tool_call_id))
      for (const callId of ran) assert.ok(intents.has(callId))
      assert.equal(new Set(ran).size, ran.length)
      for (const tool of new Set(toolOf.values())) {
        const times = ran.filter((callId) => toolOf.get(callId) === tool).length
        assert.ok(times <= (chaos.asks ? 1 : 2), `${tool} ran ${times} times`)
      }
      for (const [i, result] of settled.entries()) {
        const status = result.status === 'fulfilled' ? result.value.status : undefined
        assert.equal(ran.includes(callIds[i] as string), status === 'done' || status === 'failed')
      }
    })
  })

  it('has given back its slots when it has ended', async () => {
    await forAll(async (_, { gate, healed }) => {
      const code = healed.status === 'refused' ? healed.decision.reasons[0]?.code : undefined
      assert.notEqual(code, 'too_busy')
      await gate.close()
    })
  })
})
