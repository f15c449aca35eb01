import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { createPlanner } from '@toolgate/planner'
import { scriptedModel } from '../packages/planner/src/testing/scripted-model.ts'
import { withBinaries } from './support/binaries.ts'
import { ownPostgres } from './support/own-stores.ts'

const KEYS = [{ id: 'k1', secret: 'a secret of at least thirty-two bytes' }]
const TAKE_OVER = "UPDATE toolgate.leases SET token = nextval('toolgate.tickets')"

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('a planner over Postgres', () => {
    const postgres = ownPostgres(paths)

    it('saves no pause once another process has taken over its session unseen, and the other does', async (t) => {
      const stores = await postgres.open(t)
      const gate = createGate({
        approvals: stores.approvals,
        tools: [defineTool({ name: 'pay', execute: () => 'paid' })],
        policy: { ask: ['pay'] },
      })
      t.after(() => gate.close())
      let prepareStep = async (): Promise<undefined> => undefined
      const planner = createPlanner({
        model: scriptedModel([[{ name: 'pay' }]]),
        gate,
        sessions: stores.lock,
        state: stores.state,
        keys: KEYS,
        prepareStep: () => prepareStep(),
      })
      const run = () => planner.run({ prompt: 'Pay.', caller: { user: 'vera', session: 's1' } })
      // As after a pause of this process: the row is of another turn, and nothing here knows.
      prepareStep = async () => void (await postgres.run(TAKE_OVER))
      const late = await run()
      assert.ok(late.status === 'failed')
      assert.deepEqual([late.reason, (late.error as { code: string }).code], ['pause_failed', 'lock_lost'])
      assert.deepEqual(await stores.state.list('planner:'), [])
      prepareStep = async () => undefined
      await postgres.run('DELETE FROM toolgate.leases')
      assert.equal((await run()).status, 'paused')
      assert.equal((await stores.state.list('planner:')).length, 1)
    })
  })
})
