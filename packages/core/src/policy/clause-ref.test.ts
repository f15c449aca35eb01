import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { memoryAudit } from '../audit/memory.ts'
import { defineTool } from '../tools/tool.ts'
import { clauseText } from './clause-ref.ts'

const named = (...names: readonly string[]) => names.map((name) => defineTool({ name, execute: () => name }))

describe('the clause of a reason', () => {
  const audit = memoryAudit()
  const gate = createGate({
    tools: named('gone', 'sent', 'asked', 'odd', 'untagged', 'functional', 'open'),
    audit,
    policy: [
      {
        name: 'baseline',
        deny: ['untagged', 'gone', { match: 'sent', input: "input.to == 'x'", id: 'no-x' }],
        ask: ['asked', { match: 'open', when: "caller.user == 'nobody'" }],
        allow: ['gone', 'sent', 'asked', 'untagged', 'functional', 'open'],
      },
      { decide: ({ name }) => (name === 'functional' ? 'deny' : 'allow') },
    ],
    apps: { small: { tools: ['gone', 'asked'], policy: { name: 'of the app', deny: ['asked'] } } },
    onWarning() {},
  })
  const rows: readonly (readonly [tool: string, clause: string | undefined, path: string, recorded: string])[] = [
    ['gone', 'baseline#deny[1]', 'policy[0].deny[1]', 'baseline#deny[1]'],
    ['sent', 'baseline#no-x', 'policy[0].deny[2]', 'baseline#no-x'],
    ['asked', 'baseline#ask[0]', 'policy[0].ask[0]', 'baseline#ask[0]'],
    ['odd', undefined, 'policy[0].allow', 'baseline'],
    ['functional', undefined, 'policy[1]', 'policy 2'],
  ]
  for (const [tool, clause, path, recorded] of rows)
    it(`of ${tool} is ${recorded}, in the refusal and in its record`, async () => {
      const view = await gate.view({ user: 'vera' })
      const outcome = await view.call({ tool, input: { to: 'x' } })
      assert.ok(outcome.status === 'refused' || outcome.status === 'waiting')
      const reason = outcome.decision.reasons[0]
      assert.deepEqual([reason?.clause && clauseText(reason.clause), reason?.path], [clause, path])
      assert.equal(audit.records.at(-1)?.clause, recorded)
      assert.ok(!outcome.text.includes('baseline'))
    })

  it('is where its app has it', async () => {
    const view = await gate.view({ user: 'vera' }, { app: 'small' })
    const [reason] = view.explain('asked').reasons
    assert.equal(reason?.path, 'apps.small.policy[0].deny[0]')
    assert.deepEqual(reason?.clause, { policy: 'of the app', kind: 'deny', index: 0, match: 'asked' })
  })

  it('is not that of the same place in the policy of a fork, or of a step', async () => {
    const fork = gate.fork({ policy: { deny: ['open'] } })
    assert.equal((await fork.view({ user: 'vera' })).explain('open').reasons[0]?.path, 'fork.policy[0].deny[0]')
    const step = (await gate.view({ user: 'vera' })).narrow({ policy: { deny: ['open'] } })
    assert.equal(step.explain('open').reasons[0]?.path, 'narrow.policy[0].deny[0]')
  })
})
