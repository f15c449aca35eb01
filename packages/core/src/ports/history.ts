import type { MaybePromise } from './ports.ts'

/** The position up to which a history was read. A store that lost data answers with another generation or a smaller version. */
export interface HistoryMark {
  /** Changes each time the history is opened again. */
  readonly generation: string
  /** Grows with each addition. */
  readonly version: number
}

/**
 * `label`: a label of the run. `tuple`: the hash of a call that a rule asks about. `user`, `trusted`, `untrusted`: texts of
 * that origin. `unkept`: something that the history did not keep whole or from its beginning.
 */
const HISTORY_ITEM_KINDS = ['label', 'tuple', 'user', 'trusted', 'untrusted', 'unkept'] as const
export type HistoryItemKind = (typeof HISTORY_ITEM_KINDS)[number]

/** One thing that a history keeps. A later item of the same kind, text and `again` replaces it. */
export interface HistoryItem {
  readonly kind: HistoryItemKind
  readonly text: string
  /** Wall-clock milliseconds. */
  readonly atMs: number
  /** The attempt that added it. */
  readonly event?: string
  /** The id of its tool. */
  readonly tool?: string
  /** Another attempt has added the same item before. */
  readonly again?: true
  /** Wall-clock milliseconds after which the item no longer counts. */
  readonly expiresAt?: number
}

/** What was added to a history after a mark, oldest first, and the history's position now. */
export interface HistoryPart extends HistoryMark {
  /** What the history has kept since its beginning, as stated when it was opened. */
  readonly kept: readonly string[]
  readonly items: readonly HistoryItem[]
  /** Wall-clock milliseconds after which the store may delete the history. */
  readonly expiresAt: number
}

export interface HistoryOpening {
  /** The owner whose quota the history counts against. */
  readonly owner: string
  /**
   * Only shadow rules read the history. Shadow histories share a space as large as that of all other histories, so they
   * never cause another history to be refused.
   */
  readonly isShadow?: true
  readonly kept: readonly string[]
  /** Wall-clock milliseconds. */
  readonly nowMs: number
  /** Wall-clock milliseconds after which the store may delete the history. */
  readonly expiresAt: number
}

export interface HistoryAddition {
  readonly items: readonly HistoryItem[]
  /** The position up to which the writer has read. */
  readonly since: HistoryMark
  /** Adds nothing if anything was added after `since`. */
  readonly unlessChanged: boolean
  readonly nowMs: number
  readonly expiresAt: number
}

/** `items` holds items of other writers. They precede the added ones. */
export interface HistoryAnswer extends HistoryPart {
  readonly added: boolean
}

/**
 * Keeps the facts that rules need about runs. Additions to one history are applied one after the other, across all
 * processes.
 */
export interface HistoryStore {
  /** Returns the items after `since`, or all items if `since` is of another generation. `undefined` for an unknown history. */
  read(id: string, since: HistoryMark | undefined, nowMs: number): MaybePromise<HistoryPart | undefined>
  /**
   * Returns a history. Creates it if it is unknown.
   *
   * @throws {ToolgateError} `history_full` if this owner, or the store, has no room for another history
   */
  open(id: string, opening: HistoryOpening): MaybePromise<HistoryPart>
  /**
   * Adds items. Returns `undefined` for an unknown history. An addition that has only `unkept` items always succeeds,
   * because a gap must be noted.
   *
   * @throws {ToolgateError} `history_full` if there is no room for them
   */
  add(id: string, addition: HistoryAddition): MaybePromise<HistoryAnswer | undefined>
  /** Deletes a history, because its run is over. */
  end(id: string): MaybePromise<void>
}
