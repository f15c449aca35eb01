import type { McpAnswer } from '@toolgate/mcp'
import { RPC_ERRORS, RpcFault } from '../mcp/protocol.ts'
import type { FindTracing, McpOperation, ServedRequest } from './tracing.ts'

/** Serves a request so that it is followed, where somebody listens. `toRequest` is asked only then. */
export function serveFollowed<T>(
  find: FindTracing | undefined,
  toRequest: () => ServedRequest,
  serve: (operation: McpOperation | undefined) => Promise<T>,
): Promise<T> {
  const operation = find?.()?.startServed(toRequest())
  return operation ? follow(operation, serve) : serve(undefined)
}

/** Says how a call was answered. A refusal is a result that is an error, as the model reads it. */
export function noteAnswer(operation: McpOperation | undefined, answer: McpAnswer): void {
  if (!operation) return
  if ('error' in answer) operation.fail(String(answer.error.code), answer.error.code)
  else if (answer.result.isError === true) operation.fail('tool_error')
}

async function follow<T>(operation: McpOperation, serve: (operation: McpOperation) => Promise<T>): Promise<T> {
  try {
    return await operation.within(() => serve(operation))
  } catch (error) {
    const { code } = RPC_ERRORS[error instanceof RpcFault ? error.rule : 'internal']
    operation.fail(String(code), code)
    throw error
  } finally {
    operation.end()
  }
}
