import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import { memoryApprovals, memoryHistories } from '@toolgate/core/stores'
import { VIEWER } from '../testing/world.ts'
import { decideApprovals } from './approvals.ts'
import { createWorld, scripted, toldOf } from './testing/agents.ts'

const AFTER_READING = {
  match: 'alpha',
  when: "'untrusted' in run.labels",
  message: 'Something was read.',
} as const

describe('rules about a run (LangChain)', () => {
  it('hide a tool from the next step, once what the run has read denies it', async () => {
    const model = scripted([{ name: 'search' }], [{ name: 'alpha' }])
    const { run, witness } = createWorld(model, { policy: { deny: [AFTER_READING] } })
    assert.match(toldOf(await run(VIEWER))[1] ?? '', /not available|blocked|Something was read/i)
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(
      model.sent.map((names) => names.includes('alpha')),
      [true, false, false],
    )
  })

  for (const isLost of [false, true])
    it(`hold after a pause${isLost ? ', with the strictest answer where the history is lost' : ''}`, async () => {
      let store = memoryHistories()
      const history = {
        store: {
          read: (...given: Parameters<typeof store.read>) => store.read(...given),
          open: (...given: Parameters<typeof store.open>) => store.open(...given),
          add: (...given: Parameters<typeof store.add>) => store.add(...given),
          end: (...given: Parameters<typeof store.end>) => store.end(...given),
        },
      }
      const options = {
        policy: { ask: ['delete_all'], deny: [AFTER_READING] },
        labels: { trusted: ['delete_all'] },
        checkpointer: new MemorySaver(),
        history,
        approvals: memoryApprovals(),
      } as const
      const turns = [[{ name: 'delete_all' }], [{ name: 'alpha' }]] as const
      const before = createWorld(scripted(...turns), options)
      const result = await before.run(VIEWER)
      if (isLost) store = memoryHistories()
      // Another process: nothing of the run is in its memory.
      const after = createWorld(scripted(...turns), options)
      await decideApprovals(after.gate, { user: 'vera' }, result, { decision: 'approve' })
      const [, told] = toldOf(await after.resume(VIEWER))
      assert.deepEqual(after.witness.ran, isLost ? ['delete_all'] : ['delete_all', 'alpha'])
      assert.equal(/alpha success/.test(told ?? ''), !isLost)
    })
})
