import { toSegments } from './exact-text.ts'
import type { PinRow } from './wire.ts'

/** What the definition of a tool wants a person to know, as badges beside its name. */
export type PinNote = 'changed' | 'flagged'

/**
 * Gives the notes of a definition: that it is not the one that was pinned, and that it holds what nobody sees. What a
 * person has accepted is no news. That a tool is suspended or in quarantine is said by the reasons of its decision.
 */
export function notesOf({ status, findings, by }: PinRow): readonly PinNote[] {
  return [
    ...(status === 'changed' ? ['changed' as const] : []),
    ...(findings.length > 0 && (by === undefined || status !== 'pinned') ? ['flagged' as const] : []),
  ]
}

/** Why, for those who ask, with what would not be seen made visible. */
export function wordsOfNote(note: PinNote, { diff, findings }: PinRow): string {
  const { changes = [], more = 0 } = diff ?? {}
  const changed = changes.map(({ pointer, text }) => `${pointer || '(all of it)'}: ${text}`)
  const words =
    note === 'flagged' ? findings.map(({ text }) => text) : [...changed, ...(more > 0 ? [`${more} more`] : [])]
  return toSegments(words.join('; '))
    .map((segment) => (segment.kind === 'text' ? segment.text : segment.code))
    .join('')
}
