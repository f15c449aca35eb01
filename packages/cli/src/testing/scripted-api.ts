import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before } from 'node:test'
import { runProgram } from '../program.ts'
import { createStopSignals } from '../stop-signals.ts'
import { fakeIo } from './fake-io.ts'

/** One received request. */
interface Asked {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly authorization: string | undefined
  /** The parsed body. `undefined` without a body. */
  readonly body: unknown
}

interface Answer {
  /** Default 200. */
  readonly status?: number
  readonly body: object
}

/**
 * Serves scripted answers in place of a gateway while a suite runs. Returns a function that runs the command with a
 * console key against these answers.
 */
export function serveScripted(
  answer: (asked: Asked) => Answer,
): (...args: string[]) => Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let url = ''
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const { method, url: at, headers } = request
      const { authorization } = headers
      const { status = 200, body } = answer({
        method,
        url: at,
        authorization,
        body: text === '' ? undefined : JSON.parse(text),
      })
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return async (...args) => {
    const io = fakeIo({ TOOLGATE_URL: url, TOOLGATE_KEY: 'demo-console' })
    const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
    const start = () => assert.fail('nothing is started')
    const code = await runProgram(args, { io, version: '1.2.3', signals, start })
    return { code, out: io.out(), err: io.err() }
  }
}
