import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A message that a receiver got. */
export interface Noted {
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly text: string
  readonly body: {
    readonly type?: string
    readonly data?: Readonly<Record<string, unknown>>
    readonly [key: string]: unknown
  }
  readonly atMs: number
}

export interface NoticeReceiver {
  readonly url: string
  readonly port: number
  readonly got: readonly Noted[]
  /** How it answers from now on. Default: 200. */
  answer: (response: ServerResponse, request: IncomingMessage) => void
  forget(): void
  close(): Promise<void>
}

/** A place that records the notifications that it gets. */
export async function startNoticeReceiver(port = 0): Promise<NoticeReceiver> {
  const got: Noted[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const { headers, url = '' } = request
      got.push({
        headers,
        path: url,
        text,
        body: text === '' ? {} : (JSON.parse(text) as Noted['body']),
        atMs: Date.now(),
      })
      receiver.answer(response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const { port: bound } = server.address() as AddressInfo
  const receiver: NoticeReceiver = {
    url: `http://127.0.0.1:${bound}/hook`,
    port: bound,
    got,
    answer: (response) => void response.end('ok'),
    forget: () => void got.splice(0),
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => void server.close(() => resolve()))
    },
  }
  return receiver
}
