import type { LiveMessage } from '@toolgate/gateway'
import { WebSocket } from 'ws'
import { until } from './gateway.ts'

/** A page that listens. */
export interface LivePage {
  readonly socket: WebSocket
  readonly messages: readonly LiveMessage[]
  of<Type extends LiveMessage['type']>(type: Type): readonly Extract<LiveMessage, { type: Type }>[]
  /** The code and reason, once it is closed. */
  closed(): readonly [number, string] | undefined
}

/** Opens `/api/live` with exactly these headers. Rejects with the status where it is refused. */
export async function openLive(url: string, headers: Readonly<Record<string, string>>): Promise<LivePage> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/api/live`, { headers })
  const messages: LiveMessage[] = []
  let end: readonly [number, string] | undefined
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString()) as LiveMessage))
  socket.on('close', (code, reason) => (end = [code, reason.toString()]))
  await new Promise<void>((resolve, reject) => {
    socket.on('open', resolve)
    socket.on('unexpected-response', (_request, response) => {
      reject(new Error(String(response.statusCode)))
      socket.terminate()
    })
    socket.on('error', reject)
  })
  const page: LivePage = {
    socket,
    messages,
    of: (type) => messages.filter((message) => message.type === type) as never,
    closed: () => end,
  }
  await until(() => messages.length > 0 || end !== undefined)
  return page
}
