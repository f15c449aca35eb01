import { type ReactElement, useEffect, useMemo, useRef, useState } from 'react'
import { useLater } from '../hooks.ts'
import { mayManageKeys } from '../keys.ts'
import { PALETTE } from '../pages.ts'
import type { SessionBody } from '../wire.ts'
import { NAVIGATED, OPERATORS, TITLES } from './header.tsx'
import { NotLoaded } from './panels.tsx'

/** The keys, as the help shows them. */
const SHORTCUTS: readonly { readonly keys: readonly string[]; readonly does: string; readonly on?: string }[] = [
  { keys: ['Ctrl K', '⌘ K'], does: 'find a page, tool, caller, request, halt or call' },
  { keys: ['?'], does: 'show these keys' },
  { keys: ['↑', '↓', 'Page Up', 'Page Down', 'Home', 'End'], does: 'move between the rows of a list' },
  { keys: ['→'], does: 'move from a row to its detail beside the list' },
  { keys: ['Esc'], does: 'close what is open' },
  { keys: ['J', 'K'], does: 'next and previous request', on: 'Approvals' },
  { keys: ['A', 'R'], does: 'approve and reject the request that has the focus', on: 'Approvals' },
  { keys: ['U'], does: 'undo a rejection', on: 'Approvals' },
  { keys: ['C'], does: 'compare what the request would write with what is there', on: 'Approvals' },
]

/** Opens the palette with Ctrl-K or ⌘K, and the help about keys with `?`. */
export function Shortcuts({ session }: { session: SessionBody }): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null)
  const [shown, setShown] = useState<'palette' | 'help'>()
  const pages = useMemo(
    () =>
      NAVIGATED.filter((page) => !OPERATORS.has(page) || mayManageKeys(session)).map((page) => ({
        page,
        text: TITLES[page],
      })),
    [session],
  )
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const asked = shortcutOf(event)
      // Over another dialog, the entries in that dialog would be lost.
      if (asked === undefined || (document.querySelector('dialog[open]') !== null && !dialog.current?.open)) return
      event.preventDefault()
      setShown(asked)
      if (!dialog.current?.open) dialog.current?.showModal()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  const { Content: Palette, hasFailed } = useLater(PALETTE, shown === 'palette')
  const close = (): void => dialog.current?.close()
  return (
    <dialog
      ref={dialog}
      className="form-dialog shortcuts"
      aria-label={shown === 'help' ? 'Keys' : 'Go to'}
      onClose={() => setShown(undefined)}
      // A click on the backdrop is one on the dialog itself.
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      {shown === 'palette' && Palette && <Palette pages={pages} close={close} />}
      {shown === 'palette' && hasFailed && <NotLoaded />}
      {shown === 'help' && <Help close={close} />}
    </dialog>
  )
}

function shortcutOf(event: KeyboardEvent): 'palette' | 'help' | undefined {
  const { key, altKey, ctrlKey, metaKey, repeat, target } = event
  if (altKey || repeat) return undefined
  if (key.toLowerCase() === 'k' && ctrlKey !== metaKey) return 'palette'
  const isTyping = target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable]')
  return key === '?' && !isTyping && !ctrlKey && !metaKey ? 'help' : undefined
}

function Help({ close }: { close: () => void }): ReactElement {
  return (
    <>
      <h2>Keys</h2>
      <dl className="stack keys-help">
        {SHORTCUTS.map(({ keys, does, on }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>
              {does}
              {on !== undefined && <span className="dim">, on {on}</span>}
            </dd>
          </div>
        ))}
      </dl>
      <div className="form-buttons">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </>
  )
}
