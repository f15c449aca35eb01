import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FirstStarts } from './first-starts.ts'
import { UpstreamError } from '../../model/upstream.ts'

const NPX = { command: 'npx', args: ['-y', 'pkg@1.0.0', './docs'], env: {} }
const { signal } = new AbortController()
const timeout = new UpstreamError('upstream_timeout', 'did not answer in 30 s')

/** A start that ends when the test says so. */
function heldStart() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const extra: number[] = []
  return { start: (extraMs: number) => (extra.push(extraMs), promise), extra, resolve, reject }
}

function startOf(starts: FirstStarts, of: typeof NPX = NPX) {
  const found = starts.of(of)
  assert.ok(found)
  return found
}

describe('FirstStarts', () => {
  it('has none for a command that downloads nothing', () => {
    const starts = new FirstStarts()
    assert.equal(starts.of({ command: 'node', args: ['server.js'], env: {} }), undefined)
    assert.equal(starts.of({ command: 'npx', args: ['./server'], env: {} }), undefined)
    assert.equal(starts.of({ args: [], env: {} }), undefined)
    assert.deepEqual(startOf(starts).packages, ['pkg@1.0.0'])
  })

  it('gives the first start more time, and those after it none', async () => {
    const starts = new FirstStarts()
    assert.ok(startOf(starts).isFirst)
    assert.ok((await startOf(starts).run(signal, async (extraMs) => extraMs)) > 60_000)
    assert.ok(!startOf(starts).isFirst)
    assert.equal(await startOf(starts).run(signal, async (extraMs) => extraMs), 0)
  })

  it('runs first starts of the same packages one after the other, and others beside them', async () => {
    const starts = new FirstStarts()
    const first = heldStart()
    const second = heldStart()
    const running = startOf(starts).run(signal, first.start)
    const waiting = startOf(starts, { ...NPX, args: ['-y', 'pkg@1.0.0', './other'] }).run(signal, second.start)
    await startOf(starts, { ...NPX, args: ['-y', 'other@1.0.0'] }).run(signal, async () => 'beside')
    await startOf(starts, { ...NPX, env: { npm_config_cache: '/own' } }).run(signal, async () => 'beside')
    assert.deepEqual(second.extra, [])
    first.resolve('first')
    second.resolve('second')
    assert.equal(await running, 'first')
    assert.equal(await waiting, 'second')
    assert.deepEqual(second.extra, [0])
  })

  it('gives the next one its turn, with more time, if the first fails', async () => {
    const starts = new FirstStarts()
    const first = heldStart()
    const second = heldStart()
    const running = startOf(starts).run(signal, first.start)
    const waiting = startOf(starts).run(signal, second.start)
    first.reject(timeout)
    await assert.rejects(running, /did not answer/)
    second.resolve('second')
    await waiting
    assert.ok((second.extra[0] ?? 0) > 60_000)
  })

  it('leaves a start that is no longer wanted', async () => {
    const starts = new FirstStarts()
    const first = heldStart()
    const running = startOf(starts).run(signal, first.start)
    const ending = new AbortController()
    const waiting = startOf(starts).run(ending.signal, async () => {
      throw new UpstreamError('aborted', 'was stopped')
    })
    ending.abort()
    await assert.rejects(waiting, { code: 'aborted' })
    first.resolve('first')
    await running
  })

  it('counts the start after a timeout as a first one, as there may be a new version', async () => {
    const starts = new FirstStarts()
    await startOf(starts).run(signal, async () => 'started')
    await assert.rejects(startOf(starts).run(signal, () => Promise.reject(new UpstreamError('upstream_down', 'x'))))
    assert.ok(!startOf(starts).isFirst)
    await assert.rejects(startOf(starts).run(signal, () => Promise.reject(timeout)))
    assert.ok(startOf(starts).isFirst)
  })
})
