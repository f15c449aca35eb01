import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RequestContext } from '@mastra/core/request-context'
import { createScene, byContext, contextOf } from '../testing/mastra-scene.ts'
import { ADMIN, VIEWER } from '../testing/world.ts'
import type { AnyGate } from './options.ts'
import { createRequests } from './runs.ts'

/** What another process finds in the storage of a context. */
function stored(context: RequestContext): readonly (readonly [string, unknown])[] {
  return JSON.parse(JSON.stringify([...context.entries()])) as [string, unknown][]
}

describe('the requests of Mastra', () => {
  it('belong to the resuming caller, even if another process has stored the context of the paused run', async () => {
    const requests = createRequests(createScene().gate as unknown as AnyGate, byContext)
    const before = contextOf(ADMIN)
    await requests.open(before)
    const now = contextOf(VIEWER)
    await requests.open(now)
    // Mastra merges the stored context over that of the resume.
    const laidOver = new RequestContext<unknown>([...now.entries(), ...stored(before)] as [string, unknown][])
    assert.equal((await requests.ofTool(laidOver)).caller, VIEWER)
  })

  it('take nothing of a stored context alone', async () => {
    const requests = createRequests(createScene().gate as unknown as AnyGate, byContext)
    const before = contextOf(ADMIN)
    await requests.open(before)
    const alone = new RequestContext<unknown>(stored(before) as [string, unknown][])
    await assert.rejects(requests.ofTool(alone), { code: 'caller_untrusted' })
  })
})
