import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { safely } from './errors.ts'

describe('safely', () => {
  it('tells the listener, and says of its failures where it is told to', async () => {
    const heard: unknown[] = []
    safely((...told: unknown[]) => heard.push(told))(1, 2)
    const gone = new Error('gone')
    const failing = (): never => {
      throw gone
    }
    for (const listener of [failing, async () => failing()]) safely(listener, (error) => heard.push(error))()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(heard, [[1, 2], gone, gone])
  })

  it('changes nothing where nobody listens, and where the failures go nowhere', () => {
    safely(undefined)()
    safely(() => assert.fail('unheard'))()
  })
})
