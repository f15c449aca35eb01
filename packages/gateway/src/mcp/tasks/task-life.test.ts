import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { type TaskProcess, TaskWorld, VERA } from '../../testing/tasks.ts'
import type { Task } from './task.ts'
import { runs } from '../../../../testing/src/runs.ts'

/** Invariant 8: every call that started has exactly one terminal record, however the life of its task goes. */

interface Life {
  readonly world: TaskWorld
  process: TaskProcess
  readonly task: Task
}

const HOUR = 60 * 60_000
const PERSON = { user: 'ann', roles: ['approver'] }

const decide = async ({ world }: Life, decision: 'approve' | 'reject' | 'revoke') => {
  const status = decision === 'revoke' ? 'approved' : 'pending'
  for (const { id } of await world.gate.approvals.list({ status }))
    await world.gate.approvals.decide(PERSON, id, { decision }).catch(() => {})
}
const now = async ({ process, task }: Life) => process.store.get(VERA, task.id)

const MOVES: Readonly<Record<string, (life: Life) => unknown>> = {
  'the server asks': ({ world }) => world.move('ask'),
  'the server finishes': ({ world }) => world.move('finish'),
  'the server fails': ({ world }) => world.move('fail'),
  'the client answers': async (life) => {
    const task = await now(life)
    if (task) await life.process.tasks.answer(task, { a: { action: 'accept' } })
  },
  'the client cancels': async (life) => {
    const task = await now(life)
    if (task) await life.process.tasks.cancel(task)
  },
  'a person approves': (life) => decide(life, 'approve'),
  'a person rejects': (life) => decide(life, 'reject'),
  'a person revokes': (life) => decide(life, 'revoke'),
  'time passes': ({ world }) => (world.clock.now += HOUR / 3),
  'the policy denies': ({ world }) => world.gate.setPolicy({ deny: ['up:*'] }),
  'the policy asks': ({ world }) => world.gate.setPolicy({ ask: ['up:*'] }),
  'the policy allows': ({ world }) => world.gate.setPolicy({ allow: ['up:*'] }),
  'the tool is halted': ({ world }) => world.gate.halt({ tool: 'up:*', reason: 'test' }),
  'the key is revoked': ({ world }) => (world.isKnown = false),
  'the server is down': ({ world }) => world.setServer(false),
  'the server is up': ({ world }) => world.setServer(true),
  'the tool is gone': ({ world }) => world.setListed(false),
  'a sweep': ({ process }) => process.tasks.resume(),
  'the gateway restarts': async (life) => {
    await life.process.leave()
    life.process = life.world.open()
    await life.process.tasks.resume()
    life.process.approvals.resume()
  },
  'the gateway is off for a day': async (life) => {
    await life.process.leave()
    life.world.clock.now += 25 * HOUR
    life.process = life.world.open()
    await life.process.tasks.resume()
    life.process.approvals.resume()
  },
}

/** Events that leave a call open. */
const PAUSES = new Set(['tool_call', 'tool_input_required', 'tool_approval_required'])

async function live(kind: 'upstream' | 'approval', moves: readonly string[], isRushed: boolean): Promise<void> {
  const world = new TaskWorld()
  const process = world.open()
  await process.tasks.resume()
  process.approvals.resume()
  const life: Life = {
    world,
    process,
    task: kind === 'upstream' ? await world.begin(process) : await world.beginWaiting(process),
  }
  const callId = world.audit.records[0]?.tool_call_id ?? ''
  for (const move of moves) {
    const moving = MOVES[move]?.(life)
    if (move.startsWith('the gateway') || !isRushed) await moving
    if (!isRushed) for (let i = 0; i < 10; i++) await turn()
  }
  // In the end the server answers or is cancelled, and the time of the task is over.
  world.move('finish')
  for (let left = 2000; (await process.store.open(kind)).length > 0; left--) {
    assert.ok(left > 0, 'its call has no terminal record')
    world.clock.now += HOUR
    await life.process.tasks.resume()
    life.process.approvals.resume()
    await turn()
  }
  await life.process.leave()
  const { events, isWhole } = world.chainOf(callId)
  const finals = events.filter((event) => !PAUSES.has(event))
  assert.ok(isWhole, `an attempt without one terminal record: ${events.join(' ')}`)
  assert.equal(finals.length, 1, events.join(' '))
  assert.equal(events.at(-1), finals[0], `something after the end: ${events.join(' ')}`)
  assert.deepEqual(world.faults, [])
  await world.gate.close()
}

describe('the call of a task', () => {
  for (const kind of ['upstream', 'approval'] as const)
    for (const isRushed of [false, true])
      it(`has exactly one terminal record (${kind}${isRushed ? ', all at once' : ''})`, async () => {
        const moves = fc.array(fc.constantFrom(...Object.keys(MOVES)), { maxLength: 8 })
        await fc.assert(
          fc.asyncProperty(moves, (list) => live(kind, list, isRushed)),
          runs(150, 150),
        )
      })
})
