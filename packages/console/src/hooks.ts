import { keepPreviousData, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { type Address, formatAddress, parseAddress, withChoices } from './address.ts'
import { ApiError, getJson, type GetOptions } from './api.ts'

export interface Query {
  readonly key: readonly unknown[]
  readonly path: string
  readonly parameters?: GetOptions['query']
  readonly everyMs?: number | false
  readonly enabled?: boolean
}

/** Asks the API, and again every so often. A session that has ended leads back to the login. */
export function useApi<Body>(query: Query): UseQueryResult<Body, ApiError> {
  const client = useQueryClient()
  const { key, path, parameters = {}, everyMs = false, enabled = true } = query
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
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
    enabled,
  })
}

const moved = new EventTarget()

/** The address bar as state. */
export function useAddress(): readonly [Address, (changes: Readonly<Record<string, string>>) => void] {
  const hash = useSyncExternalStore(subscribeToHash, () => location.hash)
  const address = parseAddress(hash)
  return [
    address,
    (changes) => {
      // Typing in a filter should not fill the history.
      history.replaceState(null, '', formatAddress(withChoices(parseAddress(location.hash), changes)))
      moved.dispatchEvent(new Event('moved'))
    },
  ]
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

/** Whether the reader has scrolled down from the top of the page. */
export function useScrolled(): boolean {
  return useSyncExternalStore(subscribeToScroll, () => scrollY > 160)
}

function subscribeToScroll(listener: () => void): () => void {
  addEventListener('scroll', listener, { passive: true })
  return () => removeEventListener('scroll', listener)
}
