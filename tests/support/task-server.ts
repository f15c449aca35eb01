import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

type Json = Readonly<Record<string, unknown>>

/** A task of the server, which the test moves. */
export interface ServerTask {
  readonly taskId: string
  status: string
  statusMessage?: string
  more: Json
}

/** An upstream whose tool `work` runs as a task, over the raw wire. */
export interface TaskServer {
  readonly url: string
  readonly messages: readonly { readonly method: string; readonly params: Json }[]
  readonly tasks: readonly ServerTask[]
  sent(method: string): readonly Json[]
  /** Ends the latest task with a text. */
  finish(text: string, more?: Json): void
  /** Changes an answer before it is sent. */
  tamper: ((method: string, result: Json) => Json) | undefined
  close(): Promise<void>
}

const EXTENSION = 'io.modelcontextprotocol/tasks'
const NOW = '2026-11-22T00:00:00Z'

/** Starts one on loopback: of 2025-11-25 (`legacy`), where `work` only runs as a task, or of 2026-07-28. */
export async function startTaskServer(era: 'legacy' | 'modern'): Promise<TaskServer> {
  const isModern = era === 'modern'
  const messages: { method: string; params: Json }[] = []
  const tasks: ServerTask[] = []
  const results = new Map<string, Json>()
  const waiting = new Map<string, () => void>()

  const shown = (task: ServerTask): Json => {
    const { taskId, status, statusMessage, more } = task
    const common = { taskId, status, createdAt: NOW, lastUpdatedAt: NOW, ...(statusMessage && { statusMessage }) }
    return isModern
      ? { ...common, ttlMs: 600_000, pollIntervalMs: 1, ...more }
      : { ...common, ttl: 600_000, pollInterval: 1 }
  }
  const answer = async (method: string, params: Json): Promise<Json> => {
    const task = tasks.find(({ taskId }) => taskId === params['taskId'])
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
          serverInfo: { name: 'tasks', version: '1' },
        }
      case 'server/discover':
        return { supportedVersions: ['2026-07-28'], capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } }
      case 'tools/list':
        return {
          tools: [
            {
              name: 'work',
              inputSchema: { type: 'object' },
              ...(!isModern && { execution: { taskSupport: 'required' } }),
            },
            { name: 'plain', inputSchema: { type: 'object' } },
          ],
        }
      case 'tools/call': {
        if (params['name'] === 'plain') return { content: [{ type: 'text', text: 'plain ran' }] }
        if (!isModern && params['task'] === undefined) throw new Error('it only runs as a task')
        const made: ServerTask = { taskId: `up-${tasks.length + 1}`, status: 'working', more: {} }
        tasks.push(made)
        return isModern ? { resultType: 'task', ...shown(made) } : { task: shown(made) }
      }
      case 'tasks/get':
        if (!task) throw new Error('no such task')
        return shown(task)
      case 'tasks/result':
        if (task && !results.has(task.taskId)) await new Promise<void>((resolve) => waiting.set(task.taskId, resolve))
        return results.get(task?.taskId ?? '') ?? {}
      case 'tasks/update':
        if (task) Object.assign(task, { status: 'working', more: {} })
        return {}
      case 'tasks/cancel':
        if (task) task.status = 'cancelled'
        return task ? shown(task) : {}
      default:
        throw new Error('Method not found')
    }
  }
  const server = createServer((request, response) => {
    serve(request.method ?? '', request, response).catch(() => response.destroy())
  })
  const serve = async (verb: string, request: Parameters<typeof readText>[0], response: ServerResponse) => {
    if (verb !== 'POST') return void response.writeHead(405).end()
    const {
      id,
      method,
      params = {},
    } = JSON.parse(await readText(request)) as {
      id?: unknown
      method: string
      params?: Json
    }
    messages.push({ method, params })
    if (id === undefined) return void response.writeHead(202).end()
    if (isModern ? method === 'initialize' : method === 'server/discover')
      return send(
        response,
        { jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } },
        isModern ? 404 : 200,
      )
    try {
      const result = await answer(method, params)
      const complete = isModern ? { resultType: 'complete', ...result } : result
      send(response, { jsonrpc: '2.0', id, result: self.tamper?.(method, complete) ?? complete })
    } catch (error) {
      send(response, { jsonrpc: '2.0', id, error: { code: -32_602, message: (error as Error).message } })
    }
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const self: TaskServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    messages,
    tasks,
    tamper: undefined,
    sent: (method) => messages.flatMap((message) => (message.method === method ? [message.params] : [])),
    finish(text, more = {}) {
      const task = tasks.at(-1)
      if (!task) throw new Error('no task was started')
      const result = { content: [{ type: 'text', text }], ...more }
      results.set(task.taskId, result)
      Object.assign(task, { status: 'completed', more: { result } })
      waiting.get(task.taskId)?.()
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return self
}

function send(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
