import { keepPreviousData, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { type RefCallback, useEffect, useState, useSyncExternalStore } from 'react'
import { type Address, formatAddress, parseAddress, withChoices } from './address.ts'
import { ApiError, getJson, type GetOptions } from './api.ts'
import { type Health, health } from './health.ts'
import type { LiveState } from './live.ts'
import { live } from './live-updates.ts'
import { createMoveWatch } from './move-watch.ts'

export interface Query {
  readonly key: readonly unknown[]
  readonly path: string
  readonly parameters?: GetOptions['query']
  /** How often it is asked again while no socket says what changed. */
  readonly everyMs?: number
  readonly enabled?: boolean
}

/** While the socket says what changed, everything is still asked now and then. */
const SELDOM_MS = 15_000

/** Asks the API, and again when it may have changed. A session that has ended leads back to the login. */
export function useApi<Body>(query: Query): UseQueryResult<Body, ApiError> {
  const client = useQueryClient()
  const { key, path, parameters = {}, everyMs, enabled = true } = query
  const isOpen = useLiveState() === 'open'
  return useQuery<Body, ApiError>({
    queryKey: key,
    queryFn: async ({ signal }) => {
      try {
        return await getJson<Body>(path, { query: parameters, signal })
      } catch (error) {
        if (error instanceof ApiError && error.status === 401 && key[0] !== 'session')
          void client.invalidateQueries({ queryKey: ['session'] })
        throw error
      }
    },
    refetchInterval: everyMs === undefined ? false : isOpen ? SELDOM_MS : everyMs,
    placeholderData: keepPreviousData,
    enabled,
  })
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(live.subscribe, () => live.state)
}

export function useHealth(): Health {
  return useSyncExternalStore(health.subscribe, () => health.current)
}

const moved = new EventTarget()
export type Choose = (changes: Readonly<Record<string, string>>) => void

/** The address bar as state. */
export function useAddress(): readonly [Address, Choose] {
  const hash = useSyncExternalStore(subscribeToHash, () => location.hash)
  return [parseAddress(hash), choose]
}

/** Typing in a filter should not fill the history. */
function choose(changes: Readonly<Record<string, string>>): void {
  history.replaceState(null, '', formatAddress(withChoices(parseAddress(location.hash), changes)))
  moved.dispatchEvent(new Event('moved'))
}

function subscribeToHash(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  moved.addEventListener('moved', listener)
  return () => {
    removeEventListener('hashchange', listener)
    moved.removeEventListener('moved', listener)
  }
}

/** Wall-clock milliseconds, renewed every so often, for "3 min ago". */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

/** How long the buttons that decide an approval must have stood still before they act. */
const STILL_MS = 500
const moves = createMoveWatch({ stillMs: STILL_MS })

export interface Arming {
  /** The element whose place on the screen counts. */
  readonly ref: RefCallback<Element>
  readonly isArmed: boolean
  /** Looks again at this moment: whether an action may go ahead. */
  check(): boolean
}

/**
 * Arms buttons only while the page stands still.
 *
 * Otherwise a person may press a button that has just moved under the pointer, and an agent can choose that moment.
 */
export function useArming(): Arming {
  const isArmed = useSyncExternalStore(moves.subscribe, () => moves.isStill)
  return { ref: watchMoves, isArmed, check: moves.check }
}

function watchMoves(element: Element | null): (() => void) | undefined {
  return element ? moves.watch(element) : undefined
}

/** Whether the reader has scrolled down from the top of the page. */
export function useScrolled(): boolean {
  return useSyncExternalStore(subscribeToScroll, () => scrollY > 160)
}

function subscribeToScroll(listener: () => void): () => void {
  addEventListener('scroll', listener, { passive: true })
  return () => removeEventListener('scroll', listener)
}

/** Whether a media query holds now. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query)
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    () => matchMedia(query).matches,
  )
}
