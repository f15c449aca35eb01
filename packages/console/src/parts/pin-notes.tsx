import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import { notesOf, wordsOfNote } from '../pins.ts'
import type { PinRow, PinsBody } from '../wire.ts'
import { Badge } from './badges.tsx'

const REFRESH_MS = 12_000
const NO_PINS: readonly PinRow[] = []

/** What is known of the definitions. Asked for once by a page, not by each row of it. */
export function usePins(): readonly PinRow[] {
  return useApi<PinsBody>({ key: ['pins'], path: '/api/pins', everyMs: REFRESH_MS }).data?.pins ?? NO_PINS
}

/** What the definition of a tool wants a person to know. */
export function PinNotes({ pin }: { pin: PinRow | undefined }): ReactElement | null {
  if (!pin) return null
  return (
    <>
      {notesOf(pin).map((note) => (
        <span key={note} title={wordsOfNote(note, pin)}>
          <Badge word={note} look="ask" />
        </span>
      ))}
    </>
  )
}
