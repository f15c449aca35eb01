import { FIRST, FIRST_CONTENT } from './first.ts'

// On demand, so that the requests of the first view go out before React is there.
void import('./start.tsx').then(({ start }) => start(FIRST, FIRST_CONTENT))
