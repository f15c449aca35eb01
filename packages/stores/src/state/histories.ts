import { randomUUID } from 'node:crypto'
import type { HistoryAddition, HistoryAnswer, HistoryMark, HistoryPart, HistoryStore } from '@toolgate/core/stores'
import {
  bytesOf,
  bytesOfHistory,
  historyBounds,
  historyFull,
  isChanged,
  isDue,
  keyOf,
  needRoom,
  type StoredHistoriesOptions,
  toItem,
  toPart,
} from '../history-items.ts'
import { numberIn, type Row, textIn } from '../rows.ts'
import type { StoresDatabase } from './database.ts'
import { LOST } from './lost-histories.ts'

/** Returns the histories in the database, shared by every process that opens it. No history is deleted to make room. */
export function historiesIn(db: StoresDatabase, options?: StoredHistoriesOptions): HistoryStore {
  const { maxBytes, maxBytesOfOwner } = historyBounds('openSqliteStores.histories', options)
  const sql = statementsIn(db)

  function end(name: string): void {
    sql.removeItems.run(name)
    sql.remove.run(name)
  }

  function checkRoom(owner: string, isShadow: boolean, more: number): void {
    const sumOf = (whose: string) => numberIn(sql.selectSum.get(whose) ?? { bytes: 0 }, 'bytes')
    const all = sumOf(isShadow ? 'shadows' : 'all')
    if (all + more <= maxBytes && sumOf(`of ${owner}`) + more <= maxBytesOfOwner) return
    throw historyFull(all + more > maxBytes ? undefined : owner)
  }

  function partOf(row: Row, since: HistoryMark | undefined): HistoryPart {
    const after = since?.generation === textIn(row, 'generation') ? since.version : -1
    const items = after === numberIn(row, 'version') ? [] : sql.selectItems.all(numberIn(row, 'id'), after).map(toItem)
    return toPart(row, items)
  }

  function put(row: Row, { items, expiresAt }: HistoryAddition): number {
    const [id, before] = [numberIn(row, 'id'), numberIn(row, 'version')]
    const version = items.length === 0 ? before : before + 1
    let bytes = items.reduce((sum, item) => sum + bytesOf(item), 0)
    if (needRoom(items)) checkRoom(textIn(row, 'owner'), numberIn(row, 'shadow') === 1, bytes)
    for (const item of items) {
      const key = keyOf(item)
      const replaced = key === null ? undefined : sql.takeItem.get(id, key)
      if (replaced) bytes -= bytesOf(toItem(replaced))
      sql.insertItem.run(id, version, key, JSON.stringify(item))
    }
    sql.update.run(version, numberIn(row, 'bytes') + bytes, expiresAt, id)
    return version
  }

  return {
    read(name, since, nowMs) {
      return db.read(() => {
        const row = sql.select.get(name, nowMs)
        return row && partOf(row, since)
      })
    },
    open(name, { owner, isShadow = false, kept, nowMs, expiresAt }) {
      return db.write(() => {
        const known = sql.select.get(name, nowMs)
        if (known) return partOf(known, undefined)
        end(name)
        for (const expired of sql.selectExpired.all(nowMs)) end(textIn(expired, 'name'))
        const keptText = JSON.stringify(kept)
        const bytes = bytesOfHistory(name, keptText)
        checkRoom(owner, isShadow, bytes)
        const generation = randomUUID()
        const id = sql.insert.run(name, owner, Number(isShadow), generation, keptText, bytes, expiresAt).lastInsertRowid
        // A caller's own history may have existed before the database was lost. A run that begins now did not.
        const items = name === owner ? sql.selectLost.all(LOST).map(toItem) : []
        for (const item of items) sql.insertItem.run(id, 0, keyOf(item), JSON.stringify(item))
        return { generation, version: 0, kept, items, expiresAt }
      })
    },
    add(name, addition) {
      const { items, since, unlessChanged, nowMs } = addition
      const answer = (): HistoryAnswer | undefined => {
        const row = sql.select.get(name, nowMs)
        if (!row) return undefined
        const part = partOf(row, since)
        if (unlessChanged && isChanged(part, since)) return { ...part, added: false }
        const version = items.length === 0 && !isDue(part, addition) ? part.version : put(row, addition)
        return { ...part, version, expiresAt: Math.max(part.expiresAt, addition.expiresAt), added: true }
      }
      // Most calls add nothing, and reading needs no write.
      const due =
        items.length > 0 || db.read(() => sql.select.get(name, nowMs + (addition.expiresAt - nowMs) / 2)) === undefined
      return due ? db.write(answer) : db.read(answer)
    },
    end: (name) => db.write(() => end(name)),
  }
}

function statementsIn(db: StoresDatabase) {
  return {
    select: db.prepare('SELECT * FROM histories WHERE name = ? AND expires_at > ?'),
    selectItems: db.prepare('SELECT item FROM history_items WHERE history = ? AND version > ? ORDER BY id'),
    insert: db.prepare(
      'INSERT INTO histories (name, owner, shadow, generation, version, kept, bytes, expires_at) ' +
        'VALUES (?, ?, ?, ?, 0, ?, ?, ?)',
    ),
    selectLost: db.prepare('SELECT item FROM history_items WHERE history = (SELECT id FROM histories WHERE name = ?)'),
    insertItem: db.prepare('INSERT INTO history_items (history, version, key, item) VALUES (?, ?, ?, ?)'),
    takeItem: db.prepare('DELETE FROM history_items WHERE history = ? AND key = ? RETURNING item'),
    update: db.prepare('UPDATE histories SET version = ?, bytes = ?, expires_at = max(expires_at, ?) WHERE id = ?'),
    selectSum: db.prepare('SELECT bytes FROM history_sums WHERE whose = ?'),
    removeItems: db.prepare('DELETE FROM history_items WHERE history IN (SELECT id FROM histories WHERE name = ?)'),
    remove: db.prepare('DELETE FROM histories WHERE name = ?'),
    // Each opening adds at most one history, so expired ones are removed faster than new ones are added.
    selectExpired: db.prepare('SELECT name FROM histories WHERE expires_at <= ? ORDER BY expires_at LIMIT 2'),
  }
}
