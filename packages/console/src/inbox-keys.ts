import { type RefObject, useEffect, useRef } from 'react'
import { choose } from './hooks.ts'

/** The keys that press buttons of the open request. */
const PRESSED: ReadonlyMap<string, string> = new Map([
  ['a', '.verdict .approve'],
  ['r', '.verdict .reject'],
  ['u', '.result .undo'],
  ['c', '.comparison .compare'],
])
const STEPS: ReadonlyMap<string, number> = new Map([
  ['j', 1],
  ['k', -1],
])

interface InboxKeys {
  readonly list: RefObject<HTMLElement | null>
  /** The ids of the rows, in order. */
  readonly ids: readonly string[]
  /** Focuses a row. */
  readonly focus: (index: number) => void
  /** Selects a row, or no longer. */
  readonly toggle: (id: string) => void
}

/**
 * Handles keys: J and K open the next and the previous request; X selects one; A, R, U and C press the buttons of the open
 * one. They count while the focus is on a row or in the open request, and never for another request than the focused one.
 */
export function useInboxKeys(keys: InboxKeys): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.repeat || !latest.current.list.current) return
      const target = event.target as HTMLElement
      if (target.matches('input:not([type=checkbox]), select, textarea')) return
      if (target.closest('dialog, [role=dialog]:not(.drawer)')) return
      if (handle(event.key.toLowerCase(), target, latest.current)) event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

/** Returns whether a key had a meaning. */
function handle(key: string, target: HTMLElement, { ids, focus, toggle }: InboxKeys): boolean {
  const opened = document.querySelector<HTMLElement>('.approval')
  const inDetail = target.closest('.detail, .drawer') !== null
  const row = target.closest<HTMLElement>('.request')?.dataset['id']
  const at = row ?? (inDetail ? opened?.dataset['id'] : undefined)
  const step = STEPS.get(key)
  if (step !== undefined) {
    // From elsewhere, the first press goes to the open request.
    const from = ids.indexOf(at ?? opened?.dataset['id'] ?? '')
    const to = Math.max(0, Math.min(ids.length - 1, at === undefined ? from : from + step))
    choose({ id: ids[to] ?? '' })
    // A drawer over the list keeps the focus.
    if (target.closest('.drawer') === null) focus(to)
    return true
  }
  if (at === undefined) return false
  if (key === 'x') toggle(at)
  const button = opened?.dataset['id'] === at ? opened.querySelector<HTMLElement>(PRESSED.get(key) ?? ':not(*)') : null
  button?.click()
  return key === 'x' || button != null
}
