import { ToolgateError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import type { HistoryAddition, HistoryItem, HistoryMark, HistoryPart } from '@toolgate/core/stores'
import { numberIn, type Row, textIn } from './rows.ts'

export interface StoredHistoriesOptions {
  /** Bytes of all histories together, about. Default 256 MB. Those for shadows have as much of their own. */
  readonly maxBytes?: number | undefined
  /** Bytes of the histories of one user and client. Default 32 MB. */
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

/** `owner` is the one whose histories are full; absent where all are, together. */
export function historyFull(owner: string | undefined): ToolgateError {
  return new ToolgateError('history_full', 'There is no room for what this run does.', {
    detail: owner === undefined ? 'all histories together are full' : `the histories of ${owner} are full`,
  })
}

/** Each use keeps a history, and not each use writes. */
export function isDue({ expiresAt }: Pick<HistoryPart, 'expiresAt'>, addition: HistoryAddition): boolean {
  return expiresAt - addition.nowMs <= (addition.expiresAt - addition.nowMs) / 2
}

/** Checks whether others have added to a history since a mark. */
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

/** Of all but texts, a later item takes the place of the same. */
export function keyOf({ kind, text, again }: HistoryItem): string | null {
  return kind === 'label' || kind === 'tuple' || kind === 'unkept' ? JSON.stringify([kind, text, again ?? false]) : null
}

/** A note that something could not be kept is kept even without room. */
export function needRoom(items: readonly HistoryItem[]): boolean {
  return items.some(({ kind }) => kind !== 'unkept')
}

export function bytesOf({ text, tool = '', event = '' }: HistoryItem): number {
  return ITEM_BYTES + text.length + tool.length + event.length
}

export function bytesOfHistory(name: string, kept: string): number {
  return HISTORY_BYTES + name.length + kept.length
}
