import { ToolgateError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import type { HistoryAddition, HistoryItem, HistoryMark, HistoryPart } from '@toolgate/core/stores'
import { numberIn, type Row, textIn } from './rows.ts'

export interface StoredHistoriesOptions {
  /**
   * The approximate maximum number of bytes of all histories together. Default 256 MB. Histories for shadows have a
   * bound of the same size.
   */
  readonly maxBytes?: number | undefined
  /** The maximum number of bytes of the histories of one user and client. Default 32 MB. */
  readonly maxBytesOfOwner?: number | undefined
}

const OPTIONS = shapeOf<StoredHistoriesOptions>({ maxBytes: true, maxBytesOfOwner: true })
const MB = 1024 * 1024
const HISTORY_BYTES = 500
const ITEM_BYTES = 100

/** Returns the bounds of stored histories. @throws {ConfigError} for an unknown option */
export function historyBounds(path: string, options: StoredHistoriesOptions = {}) {
  checkShape(path, options, OPTIONS)
  const { maxBytes = 256 * MB, maxBytesOfOwner = 32 * MB } = options
  return { maxBytes, maxBytesOfOwner }
}

/** Returns the error about full histories. `owner`: whose histories are full; absent if all histories together are. */
export function historyFull(owner: string | undefined): ToolgateError {
  return new ToolgateError('history_full', 'There is no room for what this run does.', {
    detail: owner === undefined ? 'all histories together are full' : `the histories of ${owner} are full`,
  })
}

/** Whether a history must be written to extend its expiry. Not every use writes. */
export function isDue({ expiresAt }: Pick<HistoryPart, 'expiresAt'>, addition: HistoryAddition): boolean {
  return expiresAt - addition.nowMs <= (addition.expiresAt - addition.nowMs) / 2
}

/** Checks whether another process has added to a history since a mark. */
export function isChanged({ generation, version }: HistoryPart, since: HistoryMark): boolean {
  return version !== since.version || generation !== since.generation
}

/** Returns a row as a part of a history, with some of its items. */
export function toPart(row: Row, items: readonly HistoryItem[]): HistoryPart {
  return {
    generation: textIn(row, 'generation'),
    version: numberIn(row, 'version'),
    kept: readOwnJson(textIn(row, 'kept')) as readonly string[],
    items,
    expiresAt: numberIn(row, 'expires_at'),
  }
}

export function toItem(row: Row): HistoryItem {
  return readOwnJson(textIn(row, 'item')) as HistoryItem
}

/** Returns the key of an item. A later item replaces an earlier one with the same key, except texts. */
export function keyOf({ kind, text, again }: HistoryItem): string | null {
  return kind === 'label' || kind === 'tuple' || kind === 'unkept' ? JSON.stringify([kind, text, again ?? false]) : null
}

/** Whether items need room. A note about an item that could not be kept is stored even without room. */
export function needRoom(items: readonly HistoryItem[]): boolean {
  return items.some(({ kind }) => kind !== 'unkept')
}

export function bytesOf({ text, tool = '', event = '' }: HistoryItem): number {
  return ITEM_BYTES + text.length + tool.length + event.length
}

export function bytesOfHistory(name: string, kept: string): number {
  return HISTORY_BYTES + name.length + kept.length
}
