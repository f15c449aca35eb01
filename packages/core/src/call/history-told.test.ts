import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { parseOperands } from '../audit/operands.ts'
import { createGate } from '../gate/gate.ts'
import type { View } from '../gate/view.ts'
import { memoryHistories } from '../memory/histories.ts'
import { defineTool } from '../tools/tool.ts'

const run = { id: 'root' }
const child = { id: 'child', history: 'root' }
const tools = [
  defineTool({ namespace: 'web', name: 'fetch', execute: () => 'a page' }),
  defineTool({ namespace: 'fraud', name: 'check', execute: () => 'checked' }),
  defineTool({
    namespace: 'mail',
    name: 'send',
    description: 'Sends mail, for example to help@acme.com.',
    inputSchema: { type: 'object', properties: { to: { enum: ['desk@acme.com', 'help@acme.com', 'ann@acme.com'] } } },
    execute: () => 'sent',
  }),
  defineTool({ namespace: 'refunds', name: 'pay', execute: () => 'paid' }),
]

describe('what a caller is told of the run that a call is refused for', () => {
  let view: (user: string) => Promise<View>
  beforeEach(() => {
    const gate = createGate({
      tools,
      policy: {
        deny: [
          { match: 'mail:send', when: "'untrusted' in run.labels" },
          { match: 'refunds:pay', when: "!run.called('fraud:check')" },
          { match: ['web:fetch', 'fraud:check'], when: "caller.user == 'bob'" },
        ],
      },
    })
    view = (user) => gate.view({ user })
  })

  async function told(by: View, of: typeof run): Promise<string> {
    const texts = ['mail:send', 'refunds:pay'].map(async (tool) => (await by.call({ tool, run: of })).text)
    return (await Promise.all(texts)).join(' ')
  }

  it('names the tools of its calls, which the caller sees', async () => {
    const whole = await view('vera')
    await whole.call({ tool: 'web:fetch', run })
    assert.match(await told(whole, run), /has read web:fetch, .* no successful call of fraud:check/)
  })

  it('names none that a sub-agent does not have, or that is hidden from the caller', async () => {
    const whole = await view('vera')
    await whole.call({ tool: 'web:fetch', run })
    for (const by of [whole.narrow({ activeTools: ['mail:send', 'refunds:pay'] }), await view('bob')]) {
      const text = await told(by, child)
      assert.match(text, /has read something .* no successful call of another tool/)
      assert.doesNotMatch(text, /web|fetch|fraud|check/)
    }
  })

  it('names no call of another run', async () => {
    const whole = await view('vera')
    await whole.call({ tool: 'web:fetch', run: { id: 'other' } })
    assert.doesNotMatch(await told(whole, run), /web|fetch/)
  })
})

describe('the origin of a value that stands only in a description or a schema', () => {
  it('is unknown', async () => {
    const audit = memoryAudit()
    const gate = createGate({
      tools,
      policy: { deny: [{ match: 'mail:send', input: "!(origin(input.to) in ['user', 'trusted'])" }] },
      labels: { trusted: ['mail:*'] },
      audit,
    })
    const view = await gate.view({ user: 'vera' })
    const to = async (address: string) =>
      (await view.call({ tool: 'mail:send', input: { to: address }, run: { id: 'a', userWords: 'to ann@acme.com' } }))
        .status
    assert.deepEqual(
      [await to('help@acme.com'), await to('desk@acme.com'), await to('ann@acme.com')],
      ['refused', 'refused', 'done'],
    )
    const origins = audit.records.flatMap(({ operands }) => parseOperands(operands).map(({ origin }) => origin))
    assert.deepEqual(origins, ['unknown', 'unknown'])
  })
})

describe('the room for histories', () => {
  it('is that of each user and client: whoever has filled theirs refuses nobody else’s runs', async () => {
    const store = memoryHistories({ maxBytesOfOwner: 2500 })
    const gate = createGate({
      tools,
      policy: { deny: [{ match: 'mail:send', when: "'untrusted' in run.labels" }] },
      labels: { trusted: ['mail:*'] },
      history: { store },
    })
    const send = async (caller: { user: string; tenant?: string; client?: string }, id: string) => {
      const outcome = await (await gate.view(caller)).call({ tool: 'mail:send', run: { id } })
      return outcome.status === 'refused' ? outcome.decision.reasons[0]?.code : outcome.status
    }
    const ofVera: unknown[] = []
    for (let i = 0; i < 10; i++) ofVera.push(await send({ user: 'vera' }, `${i}`))
    assert.deepEqual([...new Set(ofVera)], ['done', 'history_full'])
    assert.equal(await send({ user: 'vera' }, '0'), 'done', 'a run that has begun goes on')
    for (const other of [{ user: 'bob' }, { user: 'vera', tenant: 'acme' }, { user: 'vera', client: 'editor' }])
      assert.equal(await send(other, 'another'), 'done', JSON.stringify(other))
  })
})
