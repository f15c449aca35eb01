import { createContext } from 'react'
import type { SessionBody } from './wire.ts'

/** The person who is logged in. */
export const Session = createContext<SessionBody | undefined>(undefined)
