import { FIRST, FIRST_CONTENT } from './first.ts'

// React is loaded on demand, so that the requests of the first view are sent before.
void import('./start.tsx').then(({ start }) => start(FIRST, FIRST_CONTENT))
