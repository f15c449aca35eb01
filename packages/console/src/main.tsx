// First, so that its requests go out before React is evaluated.
import { FIRST } from './first.ts'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { keepFocus } from './kept-focus.ts'

// The next poll is the retry. So a failure shows at once, and goes as soon as a request succeeds.
// `always`: a gateway on this machine is reachable without a network.
const client = new QueryClient({
  defaultOptions: {
    // A part that is shown does not fetch again what the console has just fetched.
    queries: { retry: false, networkMode: 'always', staleTime: 2000 },
    mutations: { networkMode: 'always' },
  },
})
for (const { key, data } of FIRST) void client.prefetchQuery({ queryKey: key, queryFn: () => data })

keepFocus()
createRoot(document.querySelector('#root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
