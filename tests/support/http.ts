import { type IncomingHttpHeaders, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { connect, isIP } from 'node:net'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The JSON of the body, or of the last event where the body is an event stream. */
  json(): unknown
  /** The JSON of every event. */
  events(): readonly unknown[]
}

export interface Sending {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer
  readonly signal?: AbortSignal
  /** The address that it comes from. */
  readonly localAddress?: string
}

/** Sends one request on a connection of its own, with exactly these headers beside `Host` and the length. */
export function send(url: string, sending: Sending): Promise<Answer> {
  const { method = 'POST', headers = {}, body, signal, localAddress } = sending
  const isTls = url.startsWith('https:')
  const request = isTls ? tlsRequest : plainRequest
  // Else the name is the one of the header `Host`.
  const { hostname } = new URL(url)
  const named = isTls && isIP(hostname) === 0 ? { servername: hostname } : {}
  const from = localAddress === undefined ? {} : { localAddress, family: 4 }
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method, agent: false, headers: { ...headers } as never, signal, ...from, ...named },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve(toAnswer(response.statusCode ?? 0, response.headers, Buffer.concat(chunks).toString())),
        )
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Writes bytes as they are to a socket and gives all that comes back until the other side closes it, or until `end`. */
export function sendRaw(port: number, bytes: string | Buffer, end?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text += chunk
      if (end?.test(text)) socket.destroy()
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

function toAnswer(status: number, headers: IncomingHttpHeaders, text: string): Answer {
  const events = () => [...text.matchAll(/^data: ?(\S.*)$/gm)].map(([, data]) => JSON.parse(data as string) as unknown)
  const streamed = headers['content-type'] === 'text/event-stream'
  return { status, headers, text, events, json: () => (streamed ? events().at(-1) : JSON.parse(text)) }
}
