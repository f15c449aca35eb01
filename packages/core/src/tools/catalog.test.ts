import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCatalog, type Source } from './catalog.ts'
import { defineTool, type Tool } from './tool.ts'

const tool = (name: string, description = '') => defineTool({ name, description })

function liveSource(name: string, offered: readonly Tool[]) {
  const listeners = new Set<() => void>()
  let tools: () => Iterable<Tool> = () => offered
  const source: Source = {
    name,
    tools: () => tools(),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    source,
    listeners,
    change(next: () => Iterable<Tool>) {
      tools = next
      for (const listener of listeners) listener()
    },
  }
}

describe('createCatalog', () => {
  it('has the tools of all sources, and is fixed where none can change', () => {
    const catalog = createCatalog({ tools: [tool('a')], sources: [{ name: 's', tools: () => [tool('b')] }] })
    assert.deepEqual(catalog.snapshot().ids, ['a', 'b'])
    assert.deepEqual([catalog.revision, catalog.dynamic], [1, false])
    assert.equal(catalog.get('b')?.id, 'b')
  })

  it('grows its revision with every change, and tells who listens', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ sources: [live.source] })
    const before = catalog.snapshot()
    let heard = 0
    const unsubscribe = catalog.subscribe(() => heard++)
    live.change(() => [tool('b')])
    assert.deepEqual([catalog.revision, heard, catalog.dynamic], [2, 1, true])
    assert.deepEqual([before.ids, catalog.snapshot().ids], [['a'], ['b']])
    unsubscribe()
    live.change(() => [])
    assert.deepEqual([catalog.revision, heard], [3, 1])
  })

  it('remembers every id that it has had', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ sources: [live.source] })
    live.change(() => [])
    assert.deepEqual([catalog.hasSeen('a'), catalog.get('a'), catalog.hasSeen('b')], [true, undefined, false])
  })

  it('keeps the first of two tools of one id, and names both sources', () => {
    const catalog = createCatalog({
      tools: [tool('a', 'fixed')],
      sources: [
        { name: 'one', tools: () => [tool('a', 'one'), tool('b', 'one')] },
        { name: 'two', tools: () => [tool('b', 'two'), tool('b', 'again')] },
      ],
    })
    assert.deepEqual([catalog.get('a')?.description, catalog.get('b')?.description], ['fixed', 'one'])
    assert.deepEqual(catalog.conflicts, [
      { id: 'a', kept: 'tools', dropped: 'one' },
      { id: 'b', kept: 'one', dropped: 'two' },
      { id: 'b', kept: 'one', dropped: 'two' },
    ])
  })

  it('keeps the tools of a source that fails, and the other sources as they are', () => {
    const live = liveSource('flaky', [tool('a')])
    const catalog = createCatalog({ sources: [live.source, { name: 'steady', tools: () => [tool('b')] }] })
    const error = new Error('gone')
    live.change(() => {
      throw error
    })
    assert.deepEqual(catalog.snapshot().ids, ['a', 'b'])
    assert.deepEqual(catalog.failures, [{ source: 'flaky', error }])
    live.change(() => [tool('c')])
    assert.deepEqual([catalog.snapshot().ids, catalog.failures], [['b', 'c'], []])
  })

  it('takes a source that fails halfway for one that fails', () => {
    const live = liveSource('flaky', [tool('a')])
    const catalog = createCatalog({ sources: [live.source] })
    live.change(function* () {
      yield tool('b')
      throw new Error('gone')
    })
    assert.deepEqual(catalog.snapshot().ids, ['a'])
  })

  it('takes only what defineTool made', () => {
    const fake = { ...tool('a') }
    assert.throws(() => createCatalog({ tools: [fake] }), { code: 'tool_invalid' })
    const catalog = createCatalog({ sources: [{ name: 's', tools: () => [fake] }] })
    assert.deepEqual([catalog.snapshot().ids, catalog.failures.length], [[], 1])
  })

  it('refuses two fixed tools of one id', () => {
    assert.throws(() => createCatalog({ tools: [tool('a'), tool('a')] }), { code: 'tool_duplicate' })
  })

  it('hears nothing more once it is closed', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ sources: [live.source] })
    catalog.close()
    assert.equal(live.listeners.size, 0)
  })
})
