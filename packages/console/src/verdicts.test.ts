import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError } from './api.ts'
import { Verdicts } from './verdicts.ts'
import type { Approval, ApprovalVerdictBody } from './wire.ts'

const DECIDED = { approve: 'approved', reject: 'rejected', revoke: 'revoked' } as const

describe('verdicts', () => {
  it('approves several one after the other, each by its own request', async () => {
    const { verdicts, sent, answer } = make()
    verdicts.approve([request('a'), request('b')], ' fine ')
    verdicts.approve([request('a')])
    assert.deepEqual(sent, [['a', 'approve', 'fine']])
    await answer()
    assert.equal(verdicts.current.ended.get('a')?.status, 'approved')
    assert.deepEqual(sent.slice(1), [['b', 'approve', 'fine']])
    await answer()
    assert.deepEqual([...verdicts.current.sending], [])
    verdicts.approve([request('a'), request('b')])
    assert.equal(sent.length, 2)
  })

  it('adds a grant to an approval, and sends the change of an earlier approver again', () => {
    const bodies: ApprovalVerdictBody[] = []
    const post = (_: string, body: ApprovalVerdictBody): Promise<Approval> => {
      bodies.push(body)
      return new Promise(() => {})
    }
    const verdicts = new Verdicts({ holdMs: 1, announce: () => {}, post })
    const grant = { covers: 'tool', uses: 1, forMs: 1 } as const
    verdicts.approve([{ ...request('a'), edit: { by: 'ada', atMs: 1, input: { cents: 3 } } }])
    verdicts.approve([request('b')], '', { grant })
    assert.deepEqual(bodies, [
      { decision: 'approve', input: { cents: 3 } },
      { decision: 'approve', grant },
    ])
  })

  it('does not keep a request as decided that waits for further people', () => {
    const { verdicts } = make()
    verdicts.note(request('a'))
    assert.equal(verdicts.current.ended.size, 0)
  })

  it('goes on after one that was refused, and says why', async () => {
    const { verdicts, answer } = make()
    verdicts.approve([request('a'), request('b')])
    await answer(new ApiError(409, 'approval_decided', 'Somebody has decided this already.'))
    await answer()
    assert.deepEqual([...verdicts.current.problems], [['a', 'Somebody has decided this already.']])
    assert.deepEqual([...verdicts.current.ended.keys()], ['b'])
  })

  for (const [how, error] of [
    ['the gateway is gone', new ApiError(0, 'unreachable', 'gone')],
    ['the session has ended', new ApiError(401, 'login_needed', 'out')],
    ['the gateway fails', new ApiError(500, 'internal_error', 'broken')],
  ] as const)
    it(`approves no further one when ${how}, and all can be pressed again`, async () => {
      const { verdicts, sent, answer } = make()
      verdicts.approve([request('a'), request('b')])
      await answer(error)
      assert.deepEqual([sent.length, verdicts.current.sending.size], [1, 0])
      verdicts.approve([request('b')])
      assert.equal(sent.length, 2)
    })

  it('sends a rejection only after the time to undo it', async () => {
    const { verdicts, sent, answer, pass } = make()
    verdicts.reject([request('a'), request('b')], 'odd')
    verdicts.undo(['b'])
    assert.deepEqual([sent, [...verdicts.current.held.keys()]], [[], ['a']])
    pass()
    assert.deepEqual(sent, [['a', 'reject', 'odd']])
    await answer()
    assert.equal(verdicts.current.ended.get('a')?.status, 'rejected')
  })

  it('sends no rejection of what somebody else has decided meanwhile, and approves nothing that is held', () => {
    const { verdicts, sent, pass } = make()
    verdicts.reject([request('a')])
    verdicts.approve([request('a')])
    verdicts.note({ ...request('a'), status: 'approved' })
    pass()
    assert.deepEqual(sent, [])
  })

  it('knows that an approval was used, and that a rejection cannot be', () => {
    const { verdicts } = make()
    verdicts.note({ ...request('a'), status: 'approved' })
    verdicts.note({ ...request('b'), status: 'rejected' })
    for (const id of ['a', 'b', 'c']) verdicts.noteUsed(id)
    assert.deepEqual(
      [...verdicts.current.ended.values()].map(({ status }) => status),
      ['consumed', 'rejected'],
    )
  })
})

function make(): {
  verdicts: Verdicts
  sent: (string | undefined)[][]
  answer: (error?: ApiError) => Promise<void>
  pass: () => void
} {
  const sent: (string | undefined)[][] = []
  const due = new Set<() => void>()
  const asked: ((error?: ApiError) => void)[] = []
  const verdicts = new Verdicts({
    holdMs: 5,
    announce: () => {},
    post: async (id: string, { decision, reason }: ApprovalVerdictBody) => {
      sent.push([id, decision, ...(reason === undefined ? [] : [reason])])
      await new Promise<void>((resolve, reject) => asked.push((error) => (error ? reject(error) : resolve())))
      return { ...request(id), status: DECIDED[decision] }
    },
    later(work) {
      due.add(work)
      return () => due.delete(work)
    },
  })
  return {
    verdicts,
    sent,
    async answer(error) {
      asked.shift()?.(error)
      await turn()
    },
    pass: () => due.forEach((work) => work()),
  }
}

function request(id: string): Approval {
  return {
    id,
    requestedAt: 1,
    status: 'pending',
    tool: 'files:write_file',
    user: 'viewer',
    tenant: undefined,
    run: undefined,
    definitionHash: 'd',
    inputHash: 'i',
    input: {},
    expiresAt: 60_000,
  }
}
