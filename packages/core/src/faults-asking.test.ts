import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate/gate.ts'
import { TERMINAL_EVENTS } from './ports/ports.ts'
import {
  answers,
  type Behaviour,
  hangs,
  late,
  MAX_USES,
  openBrokenGate,
  type Part,
  rejects,
  rejectsLate,
  succeedsLate,
  thenHangs,
  thenThrows,
  throws,
} from '../../testing/support/broken-gate.ts'

/** All that may be asked of a gate before a person is. */
const PARTS = ['startCall', 'validate', 'before', 'peek', 'redact', 'request', 'end', 'recordEnd'] as const

const FIRST_REVISION = createGate().policyRevision

const WAYS: Readonly<Record<string, Behaviour>> = {
  throws,
  rejects,
  hangs,
  'rejects late': rejectsLate,
  'succeeds late': succeedsLate,
  'answers a thenable that throws': thenThrows,
  'answers a thenable that hangs': thenHangs,
  'answers a text': answers('nonsense'),
  'answers null': answers(null),
  'answers an empty object': answers({}),
  'is left by the caller': (well, { controller }) => {
    controller.abort(new Error('gone'))
    return well()
  },
  'is halted': (well, { gate }) => {
    // It is recorded itself.
    if (gate.halts.length === 0) void gate.halt({ all: true, reason: 'fire' })
    return well()
  },
  'is denied': (well, { gate }) => {
    if (gate.policyRevision === FIRST_REVISION) gate.setPolicy({ deny: ['job'] })
    return well()
  },
  'is closed': (well, { gate }) => {
    void gate.close()
    return well()
  },
  // A store is waited for until its deadline, a hook until the caller leaves.
  'hangs and is left': late((_, { controller }) => {
    setImmediate(() => controller.abort(new Error('gone')))
    return new Promise(() => {})
  }),
}

async function checkAsking(part: Part, how: string, isApproved: boolean): Promise<void> {
  const world = await openBrokenGate({ asks: true, breaks: { [part]: WAYS[how] as Behaviour } })
  const { gate, audit, ran, approve } = world
  const asked = await world.askBroken(isApproved ? {} : { input: { other: true } })
  const events = audit.records.flatMap(({ event, tool_call_id: id }) => (id === 'broken' ? [event] : []))

  assert.deepEqual(ran, [])
  assert.ok(asked === undefined || asked.status === 'refused' || asked.status === 'waiting')
  if (asked !== undefined) assert.equal(typeof asked.text, 'string')
  // The one fault after which a record may be missing is that of the audit itself.
  if (part !== 'recordEnd') assert.equal(events.length, asked === undefined ? 0 : 1)
  assert.ok(events.every((event) => TERMINAL_EVENTS.has(event)))

  if (how !== 'is closed') {
    for (const { id } of gate.halts) await gate.release({ id })
    gate.setPolicy({ ask: ['job'] })
    // Nothing was taken: the approval is there, the slot is free, and each use of the limit is left.
    for (let i = 0; i < MAX_USES; i++) {
      await world.callWell(`well-${i}`)
      await approve()
      if (ran.length <= i) assert.equal((await world.callWell(`again-${i}`)).status, 'done')
    }
    assert.equal(ran.length, MAX_USES)
    assert.equal((await world.callWell('too many')).status, 'refused')
  }
  await gate.close()
}

describe('asking a person for a call', () => {
  for (const part of PARTS)
    it(`takes, runs and keeps nothing, and is recorded once or not at all, whatever ${part} does`, async () => {
      const all = Object.keys(WAYS).flatMap((how) => [true, false].map((isApproved) => ({ how, isApproved })))
      // Much of each is waiting.
      const ends = await Promise.allSettled(all.map(({ how, isApproved }) => checkAsking(part, how, isApproved)))
      for (const [i, end] of ends.entries())
        if (end.status === 'rejected') assert.fail(`${part} ${JSON.stringify(all[i])}: ${String(end.reason)}`)
    })
})
