// LangGraph's authentication: your identity provider takes the place of this table.
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth'

export interface User {
  readonly identity: string
  readonly permissions: string[]
  readonly roles: readonly string[]
}

const users = new Map<string, User>(
  Object.entries({ vera: 'viewer', bob: 'viewer', ada: 'admin', omar: 'approver' }).map(([identity, role]) => [
    `Bearer token-of-${identity}`,
    { identity, permissions: [], roles: [role] },
  ]),
)

export const auth = new Auth()
  .authenticate((request) => {
    const user = users.get(request.headers.get('authorization') ?? '')
    if (!user) throw new HTTPException(401)
    return user
  })
  // A thread belongs to the user who made it.
  .on('threads', ({ value, user }) => {
    if ('metadata' in value) value.metadata = { ...value.metadata, owner: user.identity }
    return { owner: user.identity }
  })
