import type { MaybePromise } from './ports.ts'

/** How far a history was read. A store that lost something answers with another generation, or with a smaller version. */
export interface HistoryMark {
  /** Another one for each time that the history was opened anew. */
  readonly generation: string
  /** Grows with each addition. */
  readonly version: number
}

/**
 * `label`: a label that rose. `tuple`: the hash of a call that a rule asks about. `user`, `trusted`, `untrusted`: texts of
 * that origin. `unkept`: something that the history does not keep from its beginning, or not whole.
 */
export const HISTORY_ITEM_KINDS = ['label', 'tuple', 'user', 'trusted', 'untrusted', 'unkept'] as const
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
  /** Another attempt has added the same before. */
  readonly again?: true
  /** Wall-clock milliseconds from which on it says nothing. */
  readonly expiresAt?: number
}

/** What was added to a history after a mark, oldest first, and where it stands now. */
export interface HistoryPart extends HistoryMark {
  /** What it keeps from its beginning, as it was opened. */
  readonly kept: readonly string[]
  readonly items: readonly HistoryItem[]
  /** Wall-clock milliseconds from which on the store may forget it. */
  readonly expiresAt: number
}

export interface HistoryOpening {
  /** Whose quota it counts against. */
  readonly owner: string
  /**
   * Only shadows of rules read it. Such histories have as much room as all others have, and count against that alone: however
   * many there are, no other is refused.
   */
  readonly isShadow?: true
  readonly kept: readonly string[]
  /** Wall-clock milliseconds. */
  readonly nowMs: number
  /** From then on the store may forget it. */
  readonly expiresAt: number
}

export interface HistoryAddition {
  readonly items: readonly HistoryItem[]
  /** What its writer has read. */
  readonly since: HistoryMark
  /** Adds nothing if anything was added after `since`. */
  readonly unlessChanged: boolean
  readonly nowMs: number
  readonly expiresAt: number
}

/** `items` are those of others. They come before the added ones. */
export interface HistoryAnswer extends HistoryPart {
  readonly added: boolean
}

/** Keeps what rules need of runs. Additions to one history are one after the other, over all processes. */
export interface HistoryStore {
  /** Returns what was added after `since`: all, if that is of another generation. `undefined` for an unknown history. */
  read(id: string, since: HistoryMark | undefined, nowMs: number): MaybePromise<HistoryPart | undefined>
  /**
   * Returns a history, which is made where it is unknown.
   *
   * @throws {ToolgateError} `history_full` if there is no room for another, of this owner or at all
   */
  open(id: string, opening: HistoryOpening): MaybePromise<HistoryPart>
  /**
   * Adds items. `undefined` for an unknown history. Nothing but `unkept` items always finds room: what could not be kept must be
   * noted.
   *
   * @throws {ToolgateError} `history_full` if there is no room for them
   */
  add(id: string, addition: HistoryAddition): MaybePromise<HistoryAnswer | undefined>
  /** Forgets a history: its run is over. */
  end(id: string): MaybePromise<void>
}
