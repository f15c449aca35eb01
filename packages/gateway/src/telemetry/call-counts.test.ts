import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallTrace } from '@toolgate/core/internal'
import { manualClock } from '@toolgate/testing'
import { countCalls, MAX_DENIED, MAX_TIMED, MAX_TOOLS } from './call-counts.ts'

const CALL = { tool: undefined, callId: 'c', caller: {}, run: undefined }
const READ = { id: 'files:read', namespace: 'files', name: 'read', description: '' }

describe('countCalls', () => {
  it('counts calls by status and reason, and by tool', () => {
    const { counts, start } = setup()
    start(READ).end({ status: 'done', code: undefined })
    for (let i = 0; i < 2; i++) start(READ).end({ status: 'refused', code: 'rate_limited' })
    start(undefined).end({ status: 'refused', code: 'tool_not_found' })
    assert.deepEqual(counts.calls, [
      { status: 'done', reason: '', count: 1 },
      { status: 'refused', reason: 'rate_limited', count: 2 },
      { status: 'refused', reason: 'tool_not_found', count: 1 },
    ])
    assert.deepEqual(counts.tools, [
      { tool: 'files:read', status: 'done', count: 1 },
      { tool: 'files:read', status: 'refused', count: 2 },
      { tool: '_unknown', status: 'refused', count: 1 },
    ])
  })

  it('counts by server, with how long its calls and those of each tool took, and what was refused', () => {
    const { counts, start, clock } = setup()
    const call = start({ ...READ, id: 'resource:files:file:///a' })
    clock.advance(40)
    call.end({ status: 'failed', code: 'tool_error' })
    start(READ).end({ status: 'refused', code: 'policy_denied' })
    start(READ).end({ status: 'refused', code: 'rate_limited' })
    start(undefined).end({ status: 'refused', code: 'tool_not_found' })
    assert.deepEqual(counts.servers, [
      { server: 'files', status: 'failed', count: 1 },
      { server: 'files', status: 'refused', count: 2 },
    ])
    assert.deepEqual(counts.denied, [
      { tool: 'files:read', reason: 'policy_denied', count: 1 },
      { tool: '_unknown', reason: 'tool_not_found', count: 1 },
    ])
    const took = (durations: typeof counts.toolDurations) =>
      [...durations].map(([key, { sum, count }]) => [key, sum, count])
    assert.deepEqual(took(counts.serverDurations), [['files', 0.04, 1]])
    assert.deepEqual(took(counts.toolDurations), [['resource:files:file:///a', 0.04, 1]])
  })

  it('knows how many run, and ends each once', () => {
    const { counts, start } = setup()
    const [one, two] = [start(READ), start(READ)]
    assert.equal(counts.running, 2)
    one.end({ status: 'done', code: undefined })
    one.end({ status: 'done', code: undefined })
    assert.equal(counts.running, 1)
    two.end({ status: 'failed', code: 'tool_timeout' })
    assert.equal(counts.running, 0)
    assert.deepEqual(
      counts.calls.map(({ count }) => count),
      [1, 1],
    )
  })

  it('measures those that ran, in buckets that add up', () => {
    const { counts, start, clock } = setup()
    for (const ms of [1, 30, 200_000]) {
      const call = start(READ)
      clock.advance(ms)
      call.end({ status: 'done', code: undefined })
    }
    start(READ).end({ status: 'refused', code: 'policy_denied' })
    assert.deepEqual([...counts.durations.keys()], ['done', 'failed'])
    const { buckets = [], sum, count } = counts.durations.get('done') ?? {}
    assert.deepEqual([sum?.toFixed(3), count], ['200.031', 3])
    assert.deepEqual(
      [0.001, 0.025, 0.05, 60].map((wanted) => buckets.find(([bound]) => bound === wanted)?.[1]),
      [1, 1, 2, 2],
    )
  })

  it('keeps a bounded number of series, whatever the tools are called', () => {
    const { counts, start } = setup()
    for (let i = 0; i < MAX_TOOLS + 100; i++) {
      start({ ...READ, id: `files:read_${i}` }).end({ status: 'done', code: undefined })
      start(READ).end({ status: 'failed', code: `code_${i}` })
    }
    assert.ok(counts.tools.length <= MAX_TOOLS + 3, `${counts.tools.length} series of tools`)
    assert.ok(counts.calls.length < 110, `${counts.calls.length} series of reasons`)
    const all = counts.tools.reduce((sum, { count }) => sum + count, 0)
    assert.equal(all, 2 * (MAX_TOOLS + 100))
    assert.ok(counts.tools.some(({ tool }) => tool === '_other'))
    assert.equal(counts.toolDurations.size, MAX_TIMED + 1)
    assert.deepEqual(counts.servers, [
      { server: 'files', status: 'done', count: MAX_TOOLS + 100 },
      { server: 'files', status: 'failed', count: MAX_TOOLS + 100 },
    ])
    for (let i = 0; i < MAX_DENIED + 5; i++)
      start({ ...READ, id: `files:read_${i}` }).end({ status: 'refused', code: 'policy_denied' })
    assert.equal(counts.denied.length, MAX_DENIED + 1)
    assert.deepEqual(counts.denied.at(-1), { tool: '_other', reason: '_other', count: 5 })
  })

  it('runs work within the next trace, and within nothing if there is none', () => {
    assert.equal(setup().start(READ).within, undefined)
    const seen: string[] = []
    const next: CallTrace = {
      traceId: undefined,
      within(work) {
        seen.push(this === next ? 'in' : 'detached')
        return work()
      },
      end: () => {},
    }
    const call = countCalls(manualClock(), { startCall: () => next }).startCall(CALL)
    assert.equal(
      call?.within?.(() => 42),
      42,
    )
    assert.deepEqual(seen, ['in'])
  })
})

function setup() {
  const clock = manualClock()
  const counts = countCalls(clock)
  return {
    clock,
    counts,
    start(tool: typeof READ | undefined) {
      return counts.startCall({ ...CALL, tool }) ?? assert.fail()
    },
  }
}
