/** Every revision that the gateway speaks to its clients. */
export const ERAS = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const
export type Era = (typeof ERAS)[number]
export const MODERN = '2026-07-28'

export interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly body: RpcBody
}

export interface RpcBody {
  readonly jsonrpc: '2.0'
  readonly id: string | number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

export type Params = Readonly<Record<string, unknown>>

const BASE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const NAMED: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/** Gives a correct request of an era: its body, and the headers that go with it. */
export function toMessage(era: Era, method: string, params: Params = {}, id: string | number = 1): Message {
  if (era !== MODERN) {
    return { headers: { ...BASE, 'mcp-protocol-version': era }, body: { jsonrpc: '2.0', id, method, params } }
  }
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    ...(params['_meta'] as object | undefined),
  }
  const named = params[NAMED.get(method) ?? '']
  return {
    headers: {
      ...BASE,
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(typeof named === 'string' ? { 'mcp-name': toHeaderValue(named) } : {}),
    },
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } },
  }
}

/** MCP 2026-07-28, "Value Encoding": what a header cannot carry as it is goes in base64. */
export function toHeaderValue(value: string): string {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith('=?base64?')
    ? value
    : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

export interface RpcAnswer {
  readonly jsonrpc?: string
  readonly id?: unknown
  readonly result?: {
    readonly content?: readonly { readonly type: string; readonly text?: string }[]
    readonly structuredContent?: unknown
    readonly isError?: boolean
    readonly tools?: readonly { readonly name: string }[]
    readonly _meta?: Readonly<Record<string, unknown>>
    readonly [field: string]: unknown
  }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** Gives the text of a tool's result. */
export function textOf({ result }: RpcAnswer): string {
  return (result?.content ?? []).map(({ text }) => text ?? '').join('\n')
}
