import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { AnswerStream, createKeepAlive } from './answer-stream.ts'

/** Answers one request with a stream, and returns the type and the text that its client gets. */
async function answerOf(use: (stream: AnswerStream, response: ServerResponse) => void): Promise<readonly string[]> {
  const server = createServer((_request, response) =>
    use(new AnswerStream(response, { keepAlive: createKeepAlive() }), response),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return [answer.headers.get('content-type') ?? '', await answer.text()]
  } finally {
    server.close()
  }
}

describe('AnswerStream', () => {
  const large = JSON.stringify('é'.repeat(300_000))

  it('writes a large answer in a turn of its own', async () => {
    let isWrittenAtOnce: boolean | undefined
    const answer = await answerOf((stream, response) => {
      stream.end(large)
      isWrittenAtOnce = response.headersSent
    })
    assert.equal(isWrittenAtOnce, false)
    assert.deepEqual(answer, ['application/json', large])
  })

  it('sends nothing before a large answer that waits for its turn', async () => {
    const answer = await answerOf((stream) => {
      stream.end(large)
      stream.notify({ method: 'notifications/progress' })
    })
    assert.deepEqual(answer, ['application/json', large])
  })

  it('sends a large answer that waits for its turn, although the server is closed meanwhile', async () => {
    const answer = await answerOf((stream, response) => {
      stream.end(large)
      const { socket } = response
      assert.ok(socket && 'server' in socket)
      ;(socket.server as Server).close()
    })
    assert.deepEqual(answer, ['application/json', large])
  })

  it('sends no large answer to a client that goes away before its turn', async () => {
    let gone: ServerResponse | undefined
    const answer = answerOf((stream, response) => {
      stream.end(large)
      gone = response.destroy()
    })
    await assert.rejects(answer, TypeError)
    assert.equal(gone?.headersSent && gone.writableFinished, false)
  })

  it('writes a small answer at once', async () => {
    let isWrittenAtOnce: boolean | undefined
    await answerOf((stream, response) => {
      stream.end('{}')
      isWrittenAtOnce = response.headersSent
    })
    assert.equal(isWrittenAtOnce, true)
  })
})
