import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { quiet } from './errors.ts'

describe('quiet', () => {
  it('tells the listener, and says of its failures where it is told to', async () => {
    const heard: unknown[] = []
    quiet((...told: unknown[]) => heard.push(told))(1, 2)
    const gone = new Error('gone')
    const failing = (): never => {
      throw gone
    }
    for (const listener of [failing, async () => failing()]) quiet(listener, (error) => heard.push(error))()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(heard, [[1, 2], gone, gone])
  })

  it('changes nothing where nobody listens, and where the failures go nowhere', () => {
    quiet(undefined)()
    quiet(() => assert.fail('unheard'))()
  })
})
