import { Client } from 'undici'
import { MODERN_META, VERSION } from '../wire.js'

/**
 * The clients of the figure `peers`, in a process of their own. For each message `{ url, kind, key, concurrency, what, calls }`
 * it makes so many requests over so many connections, each with a session of its own where the kind has sessions. It checks each
 * answer and sends `{ ms, p50Ms, p99Ms }` or `{ problem }` back. `{ forget: url }` closes the connections to a server.
 */
const LEGACY = '2025-11-25'
const TOOL = 'tool_0007'
const INITIALIZE = {
  protocolVersion: LEGACY,
  capabilities: {},
  clientInfo: { name: 'toolgate-bench', version: '1.0.0' },
}
const opened = new Map()
let last = 0

/** One kept-alive connection, with one request at a time. */
class Connection {
  #client

  constructor(origin) {
    this.#client = new Client(origin, { pipelining: 1, headersTimeout: 30_000, bodyTimeout: 30_000 })
  }

  send(path, headers, body) {
    return new Promise((resolve, reject) => {
      const chunks = []
      const answer = { status: 0, headers: {}, text: '' }
      this.#client.dispatch(
        { method: 'POST', path, headers, body },
        {
          onRequestStart() {},
          onResponseStart: (_, status, received) => void Object.assign(answer, { status, headers: received }),
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd: () => resolve({ ...answer, text: Buffer.concat(chunks).toString() }),
          onResponseError: (_, error) => reject(error),
        },
      )
    })
  }

  close() {
    this.#client.destroy().catch(() => {})
  }
}

/** Streamable HTTP: `session` and `no session` speak 2025-11-25, `modern` speaks 2026-07-28. */
class StreamableClient {
  #connection
  #url
  #headers
  #isModern

  constructor({ url, kind, key }) {
    this.#url = new URL(url)
    this.#connection = new Connection(this.#url.origin)
    this.#isModern = kind === 'modern'
    this.#headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': this.#isModern ? VERSION : LEGACY,
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    }
  }

  async open(kind) {
    if (kind !== 'session') return
    const { headers } = await this.#ask('initialize', INITIALIZE)
    const session = headers['mcp-session-id']
    if (session !== undefined) this.#headers['mcp-session-id'] = session
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    const { status } = await this.#connection.send(this.#url.pathname, this.#headers, body)
    if (status >= 300) throw new Error(`notifications/initialized: HTTP ${status}`)
  }

  async request(method, params) {
    return (await this.#ask(method, params)).result
  }

  async #ask(method, params) {
    const id = ++last
    const headers = this.#isModern
      ? { ...this.#headers, 'mcp-method': method, ...(params.name === undefined ? {} : { 'mcp-name': params.name }) }
      : this.#headers
    const sent = this.#isModern ? { ...params, _meta: MODERN_META } : params
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: sent })
    const answer = await this.#connection.send(this.#url.pathname, headers, body)
    return { headers: answer.headers, result: resultOf(method, id, answer) }
  }

  close() {
    this.#connection.close()
  }
}

function resultOf(method, id, { status, headers, text }) {
  const isStream = String(headers['content-type']).startsWith('text/event-stream')
  const messages = isStream ? eventsOf(text) : text === '' ? [] : [JSON.parse(text)]
  const message = messages.find((one) => one.id === id)
  if (status !== 200 || message?.result === undefined)
    throw new Error(`${method}: HTTP ${status} ${text.slice(0, 200)}`)
  return message.result
}

function eventsOf(text) {
  return text.split('\n').flatMap((line) => (/^data: ?\{/.test(line) ? [JSON.parse(line.slice(5))] : []))
}

/** HTTP+SSE of 2024-11-05: answers arrive on a stream that is opened first. mcp-hub offers nothing newer. */
class SseClient {
  #url
  #connection
  #endpoint
  #gone = new AbortController()
  #waiting = new Map()

  constructor({ url }) {
    this.#url = new URL(url)
    this.#connection = new Connection(this.#url.origin)
  }

  async open() {
    const response = await fetch(this.#url, { headers: { accept: 'text/event-stream' }, signal: this.#gone.signal })
    if (!response.ok || !response.body) throw new Error(`the stream: HTTP ${response.status}`)
    await new Promise((resolve, reject) => {
      this.#read(response.body, resolve).catch(reject)
    })
    await this.request('initialize', { ...INITIALIZE, protocolVersion: '2024-11-05' })
    await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }

  async #read(body, onEndpoint) {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of body) {
      const events = (rest + decoder.decode(chunk, { stream: true }).replaceAll('\r\n', '\n')).split('\n\n')
      rest = events.pop()
      for (const event of events) {
        const data = /^data: ?(.*)$/m.exec(event)?.[1] ?? ''
        if (/^event: endpoint$/m.test(event)) onEndpoint((this.#endpoint = data))
        else if (data.startsWith('{')) this.#receive(JSON.parse(data))
      }
    }
  }

  #receive(message) {
    this.#waiting.get(message.id)?.(message)
    this.#waiting.delete(message.id)
  }

  async #post(message) {
    const { status, text } = await this.#connection.send(
      this.#endpoint,
      { 'content-type': 'application/json' },
      JSON.stringify(message),
    )
    if (status >= 300) throw new Error(`${message.method}: HTTP ${status} ${text.slice(0, 200)}`)
  }

  async request(method, params) {
    const id = ++last
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve))
    await this.#post({ jsonrpc: '2.0', id, method, params })
    const { result, error } = await answer
    if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
    return result
  }

  close() {
    this.#gone.abort()
    this.#connection.close()
  }
}

async function open(order) {
  const client = order.kind === 'sse' ? new SseClient(order) : new StreamableClient(order)
  try {
    await client.open(order.kind)
    const tools = await list(client)
    const tool = tools.find(({ name }) => name.endsWith(TOOL))
    if (!tool) throw new Error(`none of ${tools.length} tools is ${TOOL}`)
    return { client, tool: tool.name, tools: tools.length }
  } catch (error) {
    client.close()
    throw error
  }
}

async function list(client) {
  const tools = []
  let cursor
  do {
    const page = await client.request('tools/list', cursor === undefined ? {} : { cursor })
    tools.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return tools
}

/** Calls with an input that was not sent before. A gateway that refuses quickly must not look cheap. */
async function call({ client, tool }) {
  const path = `/workspace/${++last}`
  const result = await client.request('tools/call', { name: tool, arguments: { path, head: 10 } })
  if (result.isError || result.content?.[0]?.text !== `read ${path}`)
    throw new Error(`tools/call: unexpected answer ${JSON.stringify(result).slice(0, 200)}`)
}

async function listAll({ client, tools }) {
  const found = (await list(client)).length
  if (found !== tools) throw new Error(`tools/list: ${found} tools, expected ${tools}`)
}

async function run(order) {
  const { url, kind, concurrency, calls, what } = order
  const key = `${url} ${kind}`
  const clients = opened.get(key) ?? []
  opened.set(key, clients)
  while (clients.length < concurrency) clients.push(await open(order))
  const once = what === 'list' ? listAll : call
  const took = []
  let left = calls
  const startedMs = performance.now()
  await Promise.all(
    clients.slice(0, concurrency).map(async (each) => {
      while (left-- > 0) {
        const beganMs = performance.now()
        await once(each)
        took.push(performance.now() - beganMs)
      }
    }),
  )
  took.sort((a, b) => a - b)
  return { ms: performance.now() - startedMs, p50Ms: took[calls >> 1], p99Ms: took[Math.floor(calls * 0.99)] }
}

function forget(url) {
  for (const [key, clients] of opened) {
    if (!key.startsWith(`${url} `)) continue
    for (const { client } of clients) client.close()
    opened.delete(key)
  }
  return {}
}

process.on('message', (order) => {
  Promise.resolve(order.forget === undefined ? run(order) : forget(order.forget)).then(
    (result) => process.send(result),
    (error) => process.send({ problem: String(error.message ?? error) }),
  )
})
process.once('disconnect', () => process.exit())
// A stream that ends with its server is not a fault of this process.
process.on('unhandledRejection', () => {})
