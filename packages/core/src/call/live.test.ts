import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '../tools/tool.ts'
import { createLiveCalls, type LiveCall } from './live.ts'

const tool = defineTool({ name: 'slow' })

function liveCall(stopped: unknown[]): LiveCall {
  return { caller: {}, tool, stop: (reason) => stopped.push(reason), before: undefined, after: undefined }
}

describe('createLiveCalls', () => {
  it('stops those that are there, and neither those that have ended nor those that are not meant', () => {
    const live = createLiveCalls()
    const [a, b, c] = [[], [], []] as [unknown[], unknown[], unknown[]]
    const [first, second, third] = [liveCall(a), liveCall(b), liveCall(c)]
    for (const call of [first, second, third]) live.add(call)
    live.remove(second)
    live.stopWhere((call) => (call === third ? undefined : 'halted'))
    assert.deepEqual([a, b, c], [['halted'], [], []])
  })

  it('stops one that was let in just before the closing, once it can be taken out', async () => {
    const live = createLiveCalls()
    const stopped: unknown[] = []
    live.begin()
    const closed = live.close('closed')
    live.add(liveCall(stopped))
    assert.deepEqual(stopped, [])
    await Promise.resolve()
    assert.deepEqual(stopped, ['closed'])
    live.end()
    await closed
  })

  it('is idle when no attempt is under way', async () => {
    const live = createLiveCalls()
    await live.idle()
    live.begin()
    live.begin()
    let isIdle = false
    const idle = live.idle().then(() => (isIdle = true))
    live.end()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isIdle, false)
    live.end()
    await idle
    assert.equal(live.isClosed(), false)
  })

  it('is closed once, when the last attempt has ended', async () => {
    const live = createLiveCalls()
    live.begin()
    live.begin()
    let isClosed = false
    const closing = Promise.all([live.close('closed'), live.close('again')]).then(() => (isClosed = true))
    live.end()
    await new Promise(setImmediate)
    assert.deepEqual([live.isClosed(), isClosed], [true, false])
    live.end()
    await closing
  })
})
