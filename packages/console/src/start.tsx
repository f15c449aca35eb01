import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import type { FIRST } from './first.ts'
import { keepFocus } from './kept-focus.ts'

/**
 * How long the first view waits for its data before it shows "Loading", in milliseconds. On a slow machine, drawing
 * "Loading" alone takes longer than that.
 */
const MAX_WAIT_MS = 400

// There are no retries, because the next poll is one: a failure is shown at once, and disappears when a request
// succeeds. `always`: a gateway on this machine is reachable without a network.
const client = new QueryClient({
  defaultOptions: {
    // A newly shown part does not fetch again what the console has just fetched.
    queries: { retry: false, networkMode: 'always', staleTime: 2000 },
    mutations: { networkMode: 'always' },
  },
})

/** Shows the console. If the first answers arrive soon, it shows them at once. */
export async function start(requests: typeof FIRST, content: Promise<void>): Promise<void> {
  const answers = requests.map(({ key, data }) => client.prefetchQuery({ queryKey: key, queryFn: () => data }))
  const late = new Promise((resolve) => setTimeout(resolve, MAX_WAIT_MS))
  await Promise.race([Promise.all([content, ...answers]), late])
  keepFocus()
  createRoot(document.querySelector('#root') as HTMLElement).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  )
}
