import { type Caller, defineCaller } from '@toolgate/core'
import { cookies } from 'next/headers'

/** Your own sessions take the place of this table. */
const users = new Map([
  ['session-of-vera', { user: 'vera', roles: ['viewer'] }],
  ['session-of-ada', { user: 'ada', roles: ['admin'] }],
])

/** Returns the caller of this request: by its session, and by nothing that the page sends. */
export async function signedIn(): Promise<Caller | undefined> {
  const user = users.get((await cookies()).get('session')?.value ?? '')
  return user && defineCaller(user)
}
