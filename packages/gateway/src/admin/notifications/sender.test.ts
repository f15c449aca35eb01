import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { WorkLeases } from '../../util/leases.ts'
import type { Delivery } from './deliver.ts'
import type { NoticeMessage } from './message.ts'
import { Outbox } from './outbox.ts'
import { type Receiver, sendDue, type SenderDeps } from './sender.ts'

const MINUTE_MS = 60_000
const SENT: Delivery = { outcome: 'sent', text: 'it answered 200' }
const DOWN: Delivery = { outcome: 'later', text: 'it answered 503' }

function setUp(format: 'slack' | 'json' = 'json') {
  let nowMs = 1_000_000_000_000
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
  const state = memoryState({ clock })
  const outbox = new Outbox(state, clock)
  const approvals = new Map<string, Approval>()
  const got: { readonly id: string; readonly message: NoticeMessage; readonly atMs: number }[] = []
  const outcomes: string[] = []
  const told = { answer: SENT as Delivery }
  const receiver: Receiver = { key: 'k', config: { name: 'ops', url: 'https://ops.example', format } }
  const newProcess = (): SenderDeps => ({
    outbox,
    leases: new WorkLeases({ state, clock, prefix: 'leases/', leaseMs: 20_000 }),
    clock,
    deliver: async (_config, message, { id, atMs }) => {
      got.push({ id, message, atMs })
      return told.answer
    },
    approvalOf: async (id) => approvals.get(id),
    toMessage: async ({ id, status, tool, requestedAt, expiresAt }, about) => {
      return { about, id, status, tool, why: '', requestedAt, expiresAt }
    },
    listUrl: undefined,
    onOutcome: (_receiver, { approval }, outcome) => void outcomes.push(`${approval} ${outcome}`),
    onState: () => {},
    isClosed: () => false,
  })
  const deps = newProcess()
  const add = async (id: string, ttlMs = 10 * MINUTE_MS) => {
    const approval = { id, tool: 'pay', status: 'pending', requestedAt: nowMs, expiresAt: nowMs + ttlMs } as Approval
    approvals.set(id, approval)
    await outbox.add('k', 'requested', approval)
  }
  const end = async (id: string, status: Approval['status']) => {
    const approval = { ...(approvals.get(id) as Approval), status }
    approvals.set(id, approval)
    await outbox.add('k', 'ended', approval)
  }
  const pass = (ms: number) => void (nowMs += ms)
  return {
    receiver,
    deps,
    newProcess,
    outbox,
    got,
    outcomes,
    told,
    add,
    end,
    pass,
    send: () => sendDue(receiver, deps),
  }
}

describe('sendDue', () => {
  it('goes on when the clock was set back, for chats and after a failure', async () => {
    const chat = setUp('slack')
    for (let i = 0; i < 10; i++) await chat.add(`a${i}`)
    await chat.send()
    chat.pass(-60 * MINUTE_MS)
    await chat.add('b')
    await chat.send()
    assert.equal(chat.got.length, 11)

    const program = setUp()
    program.told.answer = DOWN
    await program.add('a', 24 * 60 * MINUTE_MS)
    await program.send()
    program.pass(-60 * MINUTE_MS)
    program.told.answer = SENT
    await program.send()
    program.pass(11 * MINUTE_MS)
    await program.send()
    assert.deepEqual(program.outcomes, ['a retried', 'a sent'])
  })

  it('sends a message once, and its end after it', async () => {
    const { send, add, end, got, outcomes } = setUp()
    await add('a')
    await end('a', 'rejected')
    await send()
    await add('a')
    await end('a', 'rejected')
    await send()
    assert.deepEqual(
      got.map(({ message }) => message.about),
      [],
    )
    assert.deepEqual(outcomes, ['a unneeded', 'a unneeded', 'a unneeded', 'a unneeded'])
  })

  it('sends the end of what the receiver was told', async () => {
    const { send, add, end, got } = setUp()
    await add('a')
    await send()
    await end('a', 'approved')
    await end('a', 'approved')
    await send()
    await end('a', 'approved')
    await send()
    assert.deepEqual(
      got.map(({ message }) => message.about),
      ['requested', 'ended'],
    )
  })

  it('tries again with the same id, after longer and longer pauses of five minutes at most', async () => {
    const { send, add, got, told, pass } = setUp()
    told.answer = DOWN
    await add('a', 120 * MINUTE_MS)
    for (let seconds = 0; seconds < 3_700; seconds++) {
      await send()
      pass(1_000)
    }
    const pauses = got.slice(1).map(({ atMs }, i) => atMs - (got[i]?.atMs ?? 0))
    assert.equal(new Set(got.map(({ id }) => id)).size, 1)
    assert.ok((pauses[0] ?? 0) <= 2_000 && (pauses[2] ?? 0) >= 3_000, String(pauses))
    assert.ok(Math.max(...pauses) <= 6 * MINUTE_MS + 1_000, String(pauses))
    assert.ok(got.length > 12 && got.length < 40, String(got.length))
  })

  it('gives up after an hour, and when the approval has expired', async () => {
    const { send, add, outcomes, told, pass } = setUp()
    told.answer = DOWN
    await add('long', 120 * MINUTE_MS)
    await add('short', MINUTE_MS)
    await send()
    pass(2 * MINUTE_MS)
    await send()
    pass(60 * MINUTE_MS)
    await send()
    assert.deepEqual(
      outcomes.filter((text) => text.endsWith('failed')),
      ['short failed', 'long failed'],
    )
  })

  it('waits as long as the receiver asks, ten minutes at most', async () => {
    const { send, add, got, told, pass } = setUp()
    told.answer = { ...DOWN, outcome: 'later', retryMs: 24 * 60 * MINUTE_MS }
    await add('a', 60 * MINUTE_MS)
    await send()
    pass(9 * MINUTE_MS)
    await send()
    assert.equal(got.length, 1)
    pass(2 * MINUTE_MS)
    await send()
    assert.equal(got.length, 2)
  })

  it('leaves a receiver whose URL leads nowhere alone for ten minutes, and keeps what comes meanwhile', async () => {
    const { send, add, got, outcomes, told, pass } = setUp()
    told.answer = { outcome: 'refused', text: 'it answered 410', isGone: true }
    await add('a', 60 * MINUTE_MS)
    await send()
    await add('b', 60 * MINUTE_MS)
    await send()
    assert.deepEqual(outcomes, ['a failed'])
    told.answer = SENT
    pass(10 * MINUTE_MS)
    await send()
    assert.deepEqual(outcomes, ['a failed', 'b sent'])
    assert.equal(got.length, 2)
  })

  it('does not let one message hold up the others', async () => {
    const { send, add, outcomes, told, pass } = setUp()
    told.answer = DOWN
    await add('bad')
    await send()
    told.answer = SENT
    pass(1)
    await add('good')
    pass(2_000)
    await send()
    assert.deepEqual(outcomes, ['bad retried', 'good sent', 'bad sent'])
  })

  it('sends at most ten messages a minute to a chat, and one about all that wait', async () => {
    const { send, add, got, pass } = setUp('slack')
    for (let i = 0; i < 40; i++) await add(`a${i}`)
    await send()
    await add('later')
    await send()
    assert.equal(got.length, 10)
    const last = got.at(-1)?.message
    assert.deepEqual(last, { about: 'group', waiting: 31, ended: 0, tools: ['pay (31)'] })
    pass(MINUTE_MS)
    await send()
    assert.equal(got.at(-1)?.message.about, 'requested')
  })

  it('is done by one process at a time, and handed over when a process ends', async () => {
    const { receiver, deps, newProcess, add, got, pass } = setUp()
    await add('a')
    let hang = (): void => {}
    const ended: SenderDeps = {
      ...newProcess(),
      deliver: () => new Promise((resolve) => (hang = () => resolve(SENT))),
    }
    const stuck = sendDue(receiver, ended)
    await new Promise((resolve) => setImmediate(resolve))
    await sendDue(receiver, deps)
    assert.equal(got.length, 0)
    pass(20_001)
    await sendDue(receiver, deps)
    assert.equal(got.length, 1)
    hang()
    await stuck
  })
})
