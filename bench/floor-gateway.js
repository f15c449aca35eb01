import { openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { readBody, sendJson, toBody, toHeaders } from './wire.js'

/**
 * The least that a gateway can do, for the floor: parse the JSON-RPC body, look one answer up in a Map,
 * append a line to a file without flushing it, and pass the call to a kept-alive upstream. A list is
 * answered from bytes that are kept. No authentication, no policy, no limits, no checks.
 */
const { PORT, UPSTREAM, LOG } = process.env
const Pool = createRequire(import.meta.url)('undici/lib/dispatcher/pool.js')
const pool = new Pool(UPSTREAM, { connections: 256 })
const log = openSync(LOG, 'a')
let lines = ''

function append(line) {
  lines += line
  if (lines.length < 64 * 1024) return
  writeSync(log, lines)
  lines = ''
}

function post(headers, body, done) {
  const chunks = []
  pool.dispatch(
    { method: 'POST', path: '/mcp', headers, body },
    {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData: (_, chunk) => void chunks.push(chunk),
      onResponseEnd: () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)),
      onResponseError(_, error) {
        throw error
      },
    },
  )
}

const callHeaders = new Map()
let listed = ''

const server = createServer((request, response) => {
  readBody(request, (bytes) => {
    const message = JSON.parse(bytes)
    if (message.method === 'tools/list') {
      sendList(response, `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":`)
      return
    }
    const headers = callHeaders.get(message.params.name)
    append(`{"id":${JSON.stringify(message.id)},"tool":"${message.params.name}","ts":${Date.now()}}\n`)
    post(headers, bytes, (body) => sendJson(response, body))
  })
})

function sendList(response, head) {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': head.length + listed.length + 1 })
  response.cork()
  response.write(head)
  response.write(listed)
  response.end('}')
}

post(toHeaders('tools/list'), toBody(0, 'tools/list', {}), (body) => {
  const { result } = JSON.parse(body)
  listed = Buffer.from(JSON.stringify(result))
  for (const { name } of result.tools) callHeaders.set(name, toHeaders('tools/call', name))
  server.keepAliveTimeout = 60_000
  server.listen(Number(PORT), '127.0.0.1')
})
