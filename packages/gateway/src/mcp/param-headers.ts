import type { IncomingHttpHeaders } from 'node:http'
import { type ParamHeader, toParamHeaders } from '../servers/transport/param-headers.ts'
import { decodeHeader } from './envelope.ts'
import { RpcFault } from '../model/protocol.ts'

/**
 * Checks that arguments agree with the headers that repeat them (MCP 2026-07-28).
 *
 * @throws {RpcFault} `header_mismatch`
 */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  input: unknown,
  headers: IncomingHttpHeaders,
): void {
  const expected = toParamHeaders(declared, input)
  for (let i = 0; i < expected.length; i += 2) {
    const [header = '', value = ''] = expected.slice(i, i + 2)
    // Node's header names are in lower case.
    const sent = headers[header.toLowerCase()]
    const decoded = typeof sent === 'string' ? decodeHeader(sent.trim()) : undefined
    if (decoded === undefined || decoded !== decodeHeader(value)) {
      const message = `The headers and the body disagree: ${header} is ${sent === undefined ? '(missing)' : String(sent)}.`
      throw new RpcFault('header_mismatch', message, {
        data: { mismatch: { header, body: 'an argument of the call' } },
      })
    }
  }
}
