import { hashKey, keepPreviousData, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import {
  type RefCallback,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react'
import { type Address, formatAddress, parseAddress, withChoices } from './address.ts'
import { ApiError, getJson, type GetOptions } from './api.ts'
import { type Health, health } from './health.ts'
import type { LiveState } from './live.ts'
import type { Later, LaterState } from './later.ts'
import { live } from './live-updates.ts'
import { createMoveWatch } from './move-watch.ts'
import { createListeners, type Store } from './store.ts'

interface Query {
  readonly key: readonly unknown[]
  readonly path: string
  readonly parameters?: GetOptions['query']
  /** The time between fetches without a socket, in milliseconds. */
  readonly everyMs?: number
  readonly enabled?: boolean
  /** Whether the socket does not announce changes of this data. It is then fetched as often as without a socket. */
  readonly isUnannounced?: boolean
}

/** The time between fetches of all data with an open socket, in milliseconds. */
const SELDOM_MS = 15_000

/** The part of a query that pages read. */
export type Answer<Body> = Pick<
  UseQueryResult<Body, ApiError>,
  'data' | 'error' | 'isPending' | 'isPlaceholderData' | 'refetch'
>

/** Fetches from the API, and again when the data may have changed. If the session has ended, the login is shown. */
export function useApi<Body>(query: Query): Answer<Body> {
  const client = useQueryClient()
  const { key, path, parameters = {}, everyMs, enabled = true, isUnannounced = false } = query
  const isOpen = useLiveState() === 'open'
  const answer = useQuery<Body, ApiError>({
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
    refetchInterval: everyMs === undefined ? false : isOpen && !isUnannounced ? SELDOM_MS : everyMs,
    placeholderData: keepPreviousData,
    enabled,
  })
  const { data, isPending, isPlaceholderData, refetch } = answer
  return { data, error: useLastError(answer, hashKey(key)), isPending, isPlaceholderData, refetch }
}

/** Keeps the error of a fetch until the next fetch ends, so that the page does not show "Loading" meanwhile. */
function useLastError({ error, isPending }: UseQueryResult<unknown, ApiError>, hash: string): ApiError | null {
  const [last, setLast] = useState<{ readonly hash: string; readonly error: ApiError }>()
  if (error && last?.error !== error) setLast({ hash, error })
  return error ?? (isPending && last?.hash === hash ? last.error : null)
}

const SOON_MS = 700

/** Fetches again soon while the gateway's count is incomplete. */
export function useWhileCounting(isComplete: boolean | undefined, refetch: () => Promise<unknown>): void {
  useEffect(() => {
    if (isComplete !== false) return
    const timer = setInterval(() => void refetch(), SOON_MS)
    return () => clearInterval(timer)
  }, [isComplete, refetch])
}

export function useStore<Value>(store: Omit<Store<Value>, 'set'>): Value {
  return useSyncExternalStore(store.subscribe, () => store.current)
}

export function useLiveState(): LiveState {
  return useStore(live)
}

export function useHealth(): Health {
  return useStore(health)
}

const moved = createListeners<void>()

/** The address bar as state. */
export function useAddress(): Address {
  return parseAddress(useSyncExternalStore(subscribeToHash, () => location.hash))
}

/** Returns a function that reads a choice in the address by name. A missing choice is an empty text. */
export function useChoices(): (name: string) => string {
  const { choices } = useAddress()
  return (name) => choices.get(name) ?? ''
}

/** Returns choices in the address. The object stays the same while they do not change. */
export function useFilter<Name extends string>(names: readonly Name[]): Readonly<Record<Name, string>> {
  const of = useChoices()
  const values = JSON.stringify(names.map(of))
  return useMemo(
    () => Object.fromEntries(names.map((name) => [name, of(name)])) as Readonly<Record<Name, string>>,
    [values],
  )
}

/**
 * Changes choices in the address. It replaces the history entry, so that typing in a filter does not fill the history.
 */
export function choose(changes: Readonly<Record<string, string>>): void {
  history.replaceState(null, '', formatAddress(withChoices(parseAddress(location.hash), changes)))
  moved.call()
}

function subscribeToHash(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  const stop = moved.add(listener)
  return () => {
    removeEventListener('hashchange', listener)
    stop()
  }
}

/** Returns the wall-clock milliseconds, updated at an interval, for "3 min ago". */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

/** How long the buttons of an approval must not have moved before they work, in milliseconds. */
const STILL_MS = 500
const moves = createMoveWatch({ stillMs: STILL_MS })

interface StillButtons {
  /** A ref for the element whose position is watched. */
  readonly ref: RefCallback<Element>
  readonly isStill: boolean
  /** Checks the positions now. Returns whether the action is allowed. */
  check(): boolean
}

/**
 * Enables buttons only while they do not move.
 *
 * Otherwise a person may press a button that has just moved under the pointer. An agent could choose that moment.
 */
export function useStillButtons(): StillButtons {
  const isStill = useStore(moves)
  return { ref: watchMoves, isStill, check: moves.check }
}

function watchMoves(element: Element | null): (() => void) | undefined {
  return element ? moves.watch(element) : undefined
}

/** Loads a part when it is needed, and returns its state. */
export function useLater<Props>(part: Later<Props>, isNeeded = true): LaterState<Props> {
  const state = useStore(part)
  useEffect(() => void (isNeeded && part.load()), [part, isNeeded])
  return state
}

const SCROLLED_PX = 160
/**
 * Set when the page scrolls. React compares it after each change of the page, and reading the position then would force
 * a layout.
 */
let isScrolled = false

/** Returns whether the page is scrolled down. */
export function useScrolled(): boolean {
  return useSyncExternalStore(subscribeToScroll, () => isScrolled)
}

function subscribeToScroll(listener: () => void): () => void {
  const look = (): void => {
    isScrolled = scrollY > SCROLLED_PX
    listener()
  }
  look()
  addEventListener('scroll', look, { passive: true })
  return () => removeEventListener('scroll', look)
}

/** Returns whether a media query matches now. */
export function useMedia(query: string): boolean {
  const list = useMemo(() => matchMedia(query), [query])
  const subscribe = useCallback(
    (listener: () => void) => {
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    [list],
  )
  return useSyncExternalStore(subscribe, () => list.matches)
}

/** Returns whether the page has the layout of a narrow screen. */
export function useNarrow(): boolean {
  return useMedia('(width < 48rem)')
}

/** Returns whether a detail is beside its list, and not over it. */
export function useBeside(): boolean {
  return useMedia('(width >= 75rem)')
}

/** The place of an element, in pixels. */
interface ElementPlace {
  /** The distance from the top of the page. */
  readonly top: number
  readonly width: number
}

/** Returns an element's place, updated when the content around it changes. */
export function usePlace(element: RefObject<HTMLElement | null>): ElementPlace {
  const [place, setPlace] = useState<ElementPlace>(() => ({ top: 0, width: innerWidth }))
  useLayoutEffect(() => {
    const measure = (): void => {
      const box = element.current?.getBoundingClientRect()
      if (!box) return
      const [top, width] = [Math.round(box.top + scrollY), Math.round(box.width)]
      setPlace((before) => (before.top === top && before.width === width ? before : { top, width }))
    }
    measure()
    const observer = new ResizeObserver(measure)
    const parent = element.current?.closest('main')
    if (parent) for (const child of [parent, ...parent.children]) observer.observe(child)
    const list = element.current?.parentElement
    if (list) observer.observe(list)
    return () => observer.disconnect()
  }, [element])
  return place
}

/** Returns an element's distance from the top of the page, updated when the content above it changes. */
export function useTop(element: RefObject<HTMLElement | null>): number {
  return usePlace(element).top
}
