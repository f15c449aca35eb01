import { openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { readBody, toBody, toHeaders } from '../wire.js'

/**
 * The least that a gateway can do for clients of every era, for the floor: parse the JSON-RPC body, look the tool up in a Map,
 * append a line to a file without flushing it, and pass the request to a kept-alive upstream. A list is answered from bytes that
 * are kept. No authentication, no checks.
 */
const { PORT, UPSTREAM, LOG } = process.env
const PASSED = ['mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name']
const RETURNED = ['content-type', 'content-length', 'mcp-session-id']
const pool = new Pool(UPSTREAM, { connections: 256 })
const log = openSync(LOG, 'a')
const known = new Map(Array.from({ length: 10_000 }, (_, i) => [`tool_${String(i).padStart(4, '0')}`, true]))
let lines = ''

function append(line) {
  lines += line
  if (lines.length < 64 * 1024) return
  writeSync(log, lines)
  lines = ''
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') return void response.writeHead(405).end()
  readBody(request, (body) => {
    const { id, method, params } = JSON.parse(body)
    if (method === 'tools/list') return sendList(response, id)
    if (method === 'tools/call') {
      if (!known.has(params.name)) return response.writeHead(404).end()
      append(`{"id":${JSON.stringify(id)},"tool":"${params.name}","ts":${Date.now()}}\n`)
    }
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    for (const name of PASSED) if (request.headers[name] !== undefined) headers[name] = request.headers[name]
    return pass(headers, body, response)
  })
})

function sendList(response, id) {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': head.length + listed.length + 1 })
  response.cork()
  response.write(head)
  response.write(listed)
  response.end('}')
}

function pass(headers, body, response) {
  pool.dispatch(
    { method: 'POST', path: '/mcp', headers, body },
    {
      onRequestStart() {},
      onResponseStart(_, status, received) {
        const kept = {}
        for (const name of RETURNED) if (received[name] !== undefined) kept[name] = received[name]
        response.writeHead(status, kept)
      },
      onResponseData: (_, chunk) => void response.write(chunk),
      onResponseEnd: () => response.end(),
      onResponseError: () => response.destroy(),
    },
  )
}

const { body } = await pool.request({
  method: 'POST',
  path: '/mcp',
  headers: toHeaders('tools/list'),
  body: toBody(0, 'tools/list', {}),
})
const listed = Buffer.from(JSON.stringify((await body.json()).result))
server.keepAliveTimeout = 60_000
server.listen(Number(PORT), '127.0.0.1')
