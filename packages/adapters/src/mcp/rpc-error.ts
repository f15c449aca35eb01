import { toSendable } from '../shared/mcp-result.ts'

const INTERNAL_ERROR = -32_603

/** A JSON-RPC error: a tool that throws one has its call answered with it, instead of with a result. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    // What is no code no client reads, and then it waits.
    this.code = Number.isSafeInteger(code) ? code : INTERNAL_ERROR
    this.data = toSendable(data)
  }
}
