import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import { notesOf, wordsOfNote } from '../pins.ts'
import type { PinsBody } from '../wire.ts'

const REFRESH_MS = 12_000

/** What the definition of a tool wants a person to know. One request serves all tools of a page. */
export function PinNotes({ tool }: { tool: string }): ReactElement | null {
  const pins = useApi<PinsBody>({ key: ['pins'], path: '/api/pins', everyMs: REFRESH_MS })
  const pin = pins.data?.pins.find((one) => one.tool === tool)
  if (!pin) return null
  return (
    <>
      {notesOf(pin).map((note) => (
        <span key={note} className="badge ask" title={wordsOfNote(note, pin)}>
          {note}
        </span>
      ))}
    </>
  )
}
