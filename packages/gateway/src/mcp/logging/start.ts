import type { Method, Serving } from '../../calls/method.ts'
import type { McpReply, McpRequest } from '../../calls/request.ts'
import type { Room } from '../../heart/room.ts'
import { toLogLevel } from '../../model/log-levels.ts'
import { RpcFault } from '../../model/protocol.ts'

/** Lets earlier clients set the level of log messages, if a server may send some. Later clients set it per request. */
export const logging: Room = {
  name: 'logging',
  open({ revisions }) {
    const isServed = () => revisions.current.servers.some(({ may }) => may?.log === true)
    return {
      methods: () => (isServed() ? LOGGING : []),
      capabilities: () => (isServed() ? { logging: {} } : {}),
    }
  },
}

export const LOGGING: readonly Method[] = [
  { name: 'logging/setLevel', era: 'legacy', needsLists: false, isTraced: false, serve: setLevel },
]

async function setLevel({ params, session }: McpRequest, { sessions }: Serving): Promise<McpReply> {
  const level = toLogLevel(params['level'])
  if (level === undefined) throw new RpcFault('params_invalid', 'params.level is not a level of log messages.')
  if (!session) return { result: {} }
  session.logLevel = level
  await sessions.keep(session)
  return { result: {} }
}
