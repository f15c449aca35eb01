import { randomUUID } from 'node:crypto'
import type { Json, RawAnswer } from '../../support/mcp-host.ts'

/** The tools of the referee's scenarios about tasks, on the raw wire: SDK 2.4 has no codec for tasks of 2026-07-28. */

const EXTENSION = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const POLL_MS = 50

const listed = (name: string, properties: Json = {}): Json => ({
  name,
  description: `The referee's ${name}.`,
  inputSchema: { type: 'object', properties },
})
const STRING = { type: 'string' }

export const TASK_TOOLS: readonly Json[] = [
  listed('greet', { name: STRING }),
  listed('slow_compute', { seconds: { type: 'number' }, label: STRING }),
  listed('failing_job'),
  listed('protocol_error_job'),
  listed('confirm_delete', { filename: STRING }),
  listed('multi_input'),
  listed('test_tool_with_task'),
]

interface FixtureTask {
  readonly taskId: string
  readonly createdAt: string
  status: string
  more: Json
  /** Runs when every request is answered. */
  readonly answered: (responses: Json) => void
  pending: Json
  responses: Json
}

const says = (text: string): Json => ({ content: [{ type: 'text', text }] })
const ask = (message: string): Json => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: { type: 'object', properties: { name: STRING, confirm: { type: 'boolean' } } },
  },
})
const NEEDS_TASKS = {
  error: {
    code: -32_021,
    message: 'This tool runs as a task.',
    data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } },
  },
}
const MISMATCH = { error: { code: -32_020, message: 'Mcp-Name differs from params.taskId.' } }
const unknown = { error: { code: -32_602, message: 'The task is unknown.' } }

/** Returns the answers of one server with tasks. */
export function taskAnswers(): RawAnswer {
  const tasks = new Map<string, FixtureTask>()

  const shown = ({ taskId, status, createdAt, more }: FixtureTask): Json => {
    const times = { createdAt, lastUpdatedAt: new Date().toISOString() }
    return { taskId, status, ...times, ttlMs: 60_000, pollIntervalMs: POLL_MS, ...more }
  }
  const begin = (run: (end: (status: string, more: Json) => void) => Partial<FixtureTask> | void) => {
    const taskId = randomUUID()
    const end = (status: string, more: Json) => {
      const task = tasks.get(taskId)
      if (task && task.status !== 'cancelled') Object.assign(task, { status, more })
    }
    const task: FixtureTask = {
      taskId,
      createdAt: new Date().toISOString(),
      status: 'working',
      more: {},
      answered: () => {},
      pending: {},
      responses: {},
    }
    tasks.set(taskId, task)
    Object.assign(task, run(end))
    return { result: { resultType: 'task', ...shown({ ...task, status: 'working', more: {} }) } }
  }
  const later = (ms: number, status: string, more: Json) =>
    begin((end) => void setTimeout(() => end(status, more), ms).unref())
  const asking = (pending: Json, toText: (responses: Json) => string) =>
    begin((end) => ({
      status: 'input_required',
      pending,
      more: { inputRequests: pending },
      answered: (responses) => end('completed', { result: says(toText(responses)) }),
    }))

  const call = (params: Json): ReturnType<RawAnswer> extends Promise<infer T> ? T : never => {
    const { name, arguments: args = {}, _meta: meta = {}, inputResponses } = params as Record<string, Json>
    const { extensions = {} } = (meta[CAPABILITIES] ?? {}) as { extensions?: Json }
    const isTaskClient = extensions[EXTENSION] !== undefined
    switch (name as unknown) {
      case 'greet':
        return { result: { resultType: 'complete', ...says(`Hello, ${String(args['name'])}!`) } }
      case 'slow_compute': {
        const seconds = Number(args['seconds'] ?? 0)
        const result = says(`computed in ${seconds} s`)
        if (seconds === 0 || !isTaskClient) return { result: { resultType: 'complete', ...result } }
        return later(seconds * 1000, 'completed', { result })
      }
      case 'failing_job':
        if (!isTaskClient) return NEEDS_TASKS
        return later(500, 'completed', { result: { ...says('the job failed'), isError: true } })
      case 'protocol_error_job':
        if (!isTaskClient) return NEEDS_TASKS
        return later(500, 'failed', { error: { code: -32_603, message: 'the job broke the protocol' } })
      case 'confirm_delete':
        return isTaskClient ? asking({ confirm: ask('Delete it?') }, () => 'deleted') : NEEDS_TASKS
      case 'multi_input':
        if (!isTaskClient) return NEEDS_TASKS
        return asking({ first: ask('The first?'), second: ask('The second?') }, () => 'both answered')
      case 'test_tool_with_task': {
        const { content } = (inputResponses?.['user_name'] ?? {}) as { content?: Json }
        if (!content)
          return {
            result: {
              resultType: 'input_required',
              inputRequests: { user_name: ask('Who?') },
              requestState: 'first',
            },
          }
        return later(200, 'completed', { result: says(`Hello, ${String(content['name'])}!`) })
      }
      default:
        return undefined
    }
  }

  return async ({ method, params = {} }, { 'mcp-method': named, 'mcp-name': header }) => {
    // The SDK rejects it.
    if (named !== undefined && named !== method) return undefined
    if (method === 'tools/call') return call(params)
    if (method !== 'tasks/get' && method !== 'tasks/update' && method !== 'tasks/cancel') return undefined
    if (header !== undefined && header !== params['taskId']) return MISMATCH
    const task = tasks.get(String(params['taskId']))
    if (!task) return unknown
    if (method === 'tasks/get') return { result: { resultType: 'complete', ...shown(task) } }
    if (method === 'tasks/cancel') {
      if (task.status === 'working' || task.status === 'input_required')
        Object.assign(task, { status: 'cancelled', more: {} })
      return { result: { resultType: 'complete' } }
    }
    const responses = (params['inputResponses'] ?? {}) as Json
    task.responses = { ...task.responses, ...responses }
    task.pending = Object.fromEntries(Object.entries(task.pending).filter(([key]) => responses[key] === undefined))
    if (task.status === 'input_required') {
      task.more = { inputRequests: task.pending }
      if (Object.keys(task.pending).length === 0) task.answered(task.responses)
    }
    return { result: { resultType: 'complete' } }
  }
}
