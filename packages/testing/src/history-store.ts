import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { HistoryAddition, HistoryItem, HistoryMark, HistoryStore } from '@toolgate/core/stores'
import { assertShadowsTakeNoRoom, TINY_ROOM } from './shadow-room.ts'

export interface HistoriesUnderTest {
  readonly store: HistoryStore
  /** Returns another handle on the same histories, as in another process. Absent if there can be no other process. */
  readonly beside?: () => Promise<HistoryStore>
}

interface HistoryStoreLimits {
  readonly maxBytes: number
  readonly maxBytesOfOwner: number
}

type Make = (t: TestContext, limits: HistoryStoreLimits) => Promise<HistoriesUnderTest>

const NOW = 1_700_000_000_000
const HOUR_MS = 3_600_000
const ROOMY = { maxBytes: 10_000_000, maxBytesOfOwner: 10_000_000 }
const OPENING = { owner: 'vera', kept: ['a', 'b'], nowMs: NOW, expiresAt: NOW + HOUR_MS }

function label(text: string, more: Partial<HistoryItem> = {}): HistoryItem {
  return { kind: 'label', text, atMs: NOW, event: 'e1', tool: 'web:fetch', ...more }
}

function adding(
  since: HistoryMark,
  items: readonly HistoryItem[],
  more: Partial<HistoryAddition> = {},
): HistoryAddition {
  return { items, since, unlessChanged: false, nowMs: NOW, expiresAt: NOW + HOUR_MS, ...more }
}

/**
 * Defines the tests that every store of histories passes: additions have one order, may depend on what was read, and
 * are refused when the store is full, because nothing is deleted.
 * @example
 * historyStoreContract('memoryHistories', async (_t, limits) => ({ store: memoryHistories(limits) }))
 */
export function historyStoreContract(name: string, make: Make): void {
  describe(`${name} (history store contract)`, () => {
    const open = async (t: TestContext, limits: HistoryStoreLimits = ROOMY) => {
      const { store, beside } = await make(t, limits)
      return { store, other: (await beside?.()) ?? store }
    }

    it('knows no history that was not opened, and opens one once', async (t) => {
      const { store, other } = await open(t)
      assert.equal(await store.read('a', undefined, NOW), undefined)
      assert.equal(await store.add('a', adding({ generation: 'x', version: 0 }, [label('private')])), undefined)
      const { generation, version, kept, items, expiresAt } = await store.open('a', OPENING)
      assert.deepEqual(
        { version, kept, items, expiresAt },
        { version: 0, kept: ['a', 'b'], items: [], expiresAt: NOW + HOUR_MS },
      )
      const again = await other.open('a', { ...OPENING, kept: ['c'] })
      assert.deepEqual([again.generation, again.version, again.kept], [generation, 0, ['a', 'b']])
    })

    it('keeps every field of an item', async (t) => {
      const { store, other } = await open(t)
      const first = await store.open('a', OPENING)
      const items: HistoryItem[] = [
        label('private'),
        label('private', { again: true, event: 'e2', expiresAt: NOW + 1000 }),
        { kind: 'tuple', text: 'f00', atMs: NOW + 1, event: 'e3', tool: 'pay' },
        { kind: 'user', text: 'ä 🙂\n"quoted"', atMs: NOW },
        { kind: 'untrusted', text: '', atMs: NOW },
        { kind: 'unkept', text: '*', atMs: NOW },
      ]
      await store.add('a', adding(first, items))
      assert.deepEqual((await other.read('a', undefined, NOW))?.items, items)
    })

    it('returns what was added after a mark, and what others added before an addition', async (t) => {
      const { store, other } = await open(t)
      const first = await store.open('a', OPENING)
      const second = await store.add('a', adding(first, [label('a')]))
      assert.deepEqual([second?.added, second?.version, second?.items], [true, 1, []])
      const third = await other.add('a', adding(first, [label('b')]))
      assert.deepEqual([third?.added, third?.version, third?.items], [true, 2, [label('a')]])
      const read = await store.read('a', { ...first, version: 1 }, NOW)
      assert.deepEqual([read?.version, read?.items], [2, [label('b')]])
      assert.deepEqual((await store.read('a', read, NOW))?.items, [])
      assert.equal((await store.read('a', { generation: 'another', version: 2 }, NOW))?.items.length, 2)
    })

    it('adds only to what was read, where that is asked for', async (t) => {
      const { store, other } = await open(t)
      const first = await store.open('a', OPENING)
      const all = Array.from({ length: 10 }, async (_, i) =>
        (i % 2 === 0 ? store : other).add('a', adding(first, [label(`l${i}`)], { unlessChanged: true })),
      )
      const answers = await Promise.all(all)
      assert.equal(answers.filter((answer) => answer?.added).length, 1)
      const refused = answers.find((answer) => answer?.added === false)
      assert.deepEqual([refused?.version, refused?.items.length], [1, 1])
      const check = await store.add('a', adding({ ...first, version: 1 }, [], { unlessChanged: true }))
      assert.deepEqual([check?.added, check?.version], [true, 1], 'nothing was added')
    })

    it('loses no addition, however many come at once', async (t) => {
      const { store, other } = await open(t)
      const first = await store.open('a', OPENING)
      const items = Array.from({ length: 20 }, (_, i) => label(`l${i}`))
      await Promise.all(items.map(async (item, i) => (i % 2 === 0 ? store : other).add('a', adding(first, [item]))))
      const read = await store.read('a', undefined, NOW)
      assert.equal(read?.version, 20)
      assert.deepEqual(new Set(read.items.map(({ text }) => text)), new Set(items.map(({ text }) => text)))
    })

    it('replaces an item of the same kind and text, and adds texts', async (t) => {
      const { store } = await open(t)
      const first = await store.open('a', OPENING)
      await store.add('a', adding(first, [label('a', { again: true })]))
      await store.add('a', adding(first, [label('a', { again: true, event: 'e9', atMs: NOW + 5 })]))
      await store.add('a', adding(first, [{ kind: 'trusted', text: 'x', atMs: NOW }]))
      await store.add('a', adding(first, [{ kind: 'trusted', text: 'x', atMs: NOW }]))
      const items = (await store.read('a', undefined, NOW))?.items ?? []
      assert.deepEqual(
        items.map(({ kind, event }) => [kind, event]),
        [
          ['label', 'e9'],
          ['trusted', undefined],
          ['trusted', undefined],
        ],
      )
    })

    it('forgets a history that has expired or ended, and begins it with another generation', async (t) => {
      const { store, other } = await open(t)
      const first = await store.open('a', OPENING)
      await store.add('a', adding(first, [label('a')], { expiresAt: NOW + 2 * HOUR_MS }))
      assert.equal((await store.read('a', undefined, NOW + HOUR_MS))?.items.length, 1)
      assert.equal(await other.read('a', undefined, NOW + 2 * HOUR_MS), undefined)
      const second = await store.open('a', { ...OPENING, nowMs: NOW + 2 * HOUR_MS, expiresAt: NOW + 3 * HOUR_MS })
      assert.deepEqual(second.items, [])
      assert.notEqual(second.generation, first.generation)
      await store.end('a')
      assert.equal(await other.read('a', undefined, NOW + 2 * HOUR_MS), undefined)
    })

    it('refuses nobody a history because another owner has too much', async (t) => {
      const { store, other } = await open(t, { maxBytes: 10_000_000, maxBytesOfOwner: 20_000 })
      const first = await store.open('a', OPENING)
      await store.add('a', adding(first, [{ kind: 'untrusted', text: 'x'.repeat(19_000), atMs: NOW }]))
      const openMany = async (owner: string) => {
        for (let i = 0; i < 20; i++) await other.open(`${owner} ${i}`, { ...OPENING, owner })
      }
      await assert.rejects(openMany('vera'), { code: 'history_full' })
      await openMany('bob')
    })

    it('counts histories for shadows apart: neither they nor the others take the room of each other', async (t) => {
      const text: HistoryItem = { kind: 'untrusted', text: 'x'.repeat(19_000), atMs: NOW }
      for (const first of [true, false]) {
        const { store, other } = await open(t, { maxBytes: 20_000, maxBytesOfOwner: 10_000_000 })
        const openOne = async (id: string, isShadow: boolean) =>
          other.open(id, isShadow ? { ...OPENING, owner: 'shadow vera', isShadow } : OPENING)
        const openMany = async (isShadow: boolean) => {
          for (let i = 0; i < 20; i++) await openOne(`b${i}`, isShadow)
        }
        await store.add('a', adding(await openOne('a', first), [text]))
        await assert.rejects(openMany(first), { code: 'history_full' })
        assert.equal((await store.add('c', adding(await openOne('c', !first), [text])))?.added, true)
        await assert.rejects(openMany(!first), { code: 'history_full' })
        await store.end('a')
        await openMany(first)
      }
    })

    it('gives enforced rules the same room with shadows and without', async (t) => {
      await assertShadowsTakeNoRoom((await open(t, TINY_ROOM)).store)
    })

    it('notes what could not be kept where there is no room', async (t) => {
      for (const limits of [
        { maxBytes: 20_000, maxBytesOfOwner: 10_000_000 },
        { maxBytes: 10_000_000, maxBytesOfOwner: 20_000 },
      ]) {
        const { store, other } = await open(t, limits)
        const first = await store.open('a', OPENING)
        const fill: HistoryItem = { kind: 'untrusted', text: 'x'.repeat(19_350), atMs: NOW }
        const note: HistoryItem = { kind: 'unkept', text: '*', atMs: NOW }
        await store.add('a', adding(first, [fill]))
        const more = [{ ...fill, text: 'x'.repeat(1000) }, note]
        await assert.rejects(async () => store.add('a', adding(first, more)), { code: 'history_full' })
        for (let i = 0; i < 20; i++) await store.add('a', adding(first, [note]))
        assert.deepEqual((await other.read('a', undefined, NOW))?.items, [fill, note])
      }
    })

    it('refuses a new history where an owner, or all, have too much, and forgets nothing', async (t) => {
      for (const limits of [
        { maxBytes: 20_000, maxBytesOfOwner: 10_000_000 },
        { maxBytes: 10_000_000, maxBytesOfOwner: 20_000 },
      ]) {
        const { store } = await open(t, limits)
        const first = await store.open('a', OPENING)
        await store.add('a', adding(first, [{ kind: 'untrusted', text: 'x'.repeat(19_000), atMs: NOW }]))
        await assert.rejects(
          async () => {
            for (let i = 0; i < 100; i++) await store.open(`b${i}`, OPENING)
          },
          { code: 'history_full' },
        )
        assert.equal((await store.read('a', undefined, NOW))?.items.length, 1)
        await store.end('a')
        await store.open('c', OPENING)
      }
    })
  })
}
