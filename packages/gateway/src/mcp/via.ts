import type { IncomingHttpHeaders } from 'node:http'
import type { ServerConfig } from '../config/config.ts'
import { RpcFault } from './protocol.ts'

/** The header in which a gateway says to the servers behind it which one it is. */
export const VIA_HEADER = 'toolgate-via'

/** Returns the server with the header that names the gateway in front of it, if it is reached at a URL. */
export function withVia(server: ServerConfig, via: string): ServerConfig {
  return server.url === undefined ? server : { ...server, headers: { ...server.headers, [VIA_HEADER]: via } }
}

/**
 * Checks that a request does not come from this gateway itself. One that lists its own tools as those of a server would
 * have more of them at each reading.
 *
 * @throws {RpcFault} `loop_refused`
 */
export function checkLoop(headers: IncomingHttpHeaders, via: string | undefined): void {
  if (via !== undefined && headers[VIA_HEADER] === via)
    throw new RpcFault('loop_refused', 'This request comes from this gateway: it is configured as a server of itself.')
}
