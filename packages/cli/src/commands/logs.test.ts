import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { createStopSignals } from '../stop-signals.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { serveScripted } from '../testing/scripted-api.ts'
import { logsCommand } from './logs.ts'

const LINES = [
  { seq: 4, wallMs: 0, level: 'stderr', text: 'hello \u001b[2J' },
  { seq: 7, wallMs: 1000, level: 'warn', user: 'vera', text: 'is down' },
]

describe('toolgate logs', () => {
  const asked: (string | undefined)[] = []
  const run = serveScripted(({ url }) => {
    asked.push(url)
    if (url?.includes('flies'))
      return { status: 404, body: { error: { code: 'server_unknown', message: 'Did you mean "files"?' } } }
    return { body: { server: 'files', lines: LINES } }
  })

  it('prints the last lines, and lets none control the terminal', async () => {
    const { code, out } = await run('logs', 'files', '-n', '2')
    assert.deepEqual([code, asked.at(-1)], [0, '/api/logs?server=files&limit=2'])
    assert.equal(
      out,
      '1970-01-01T00:00:00.000Z  stderr  hello \\u001b[2J\n1970-01-01T00:00:01.000Z  warn    vera  is down\n',
    )
  })

  it('prints one JSON line each for programs', async () => {
    const { out } = await run('logs', 'files', '--json')
    assert.deepEqual(
      out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { seq: number }).seq),
      [4, 7],
    )
  })

  it('ends with 2 for an unknown server', async () => {
    const { code, err } = await run('logs', 'flies')
    assert.deepEqual([code, err], [2, 'error  Did you mean "files"?\n'])
  })

  it('follows from the last line until it is stopped', async (t) => {
    const queries: string[] = []
    const source = new EventEmitter()
    const server = createServer(({ url = '' }, response) => {
      queries.push(url)
      const isFirst = queries.length === 1
      if (queries.length === 3) source.emit('SIGINT', 'SIGINT')
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ server: 'files', lines: isFirst ? LINES : [{ ...LINES[0], seq: 9, text: 'new' }] }))
    })
    t.after(() => server.closeAllConnections())
    t.after(() => server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const io = fakeIo()
    const signals = createStopSignals({ source, exit: () => {}, nowMs: () => 0 })
    assert.equal(await logsCommand('files', { url, key: 'k', lines: 2, follow: true }, io, signals), 'ok')
    assert.deepEqual(queries.slice(0, 3), [
      '/api/logs?server=files&limit=2',
      '/api/logs?server=files&after=7',
      '/api/logs?server=files&after=9',
    ])
    assert.match(io.out(), /new\n/)
  })
})
