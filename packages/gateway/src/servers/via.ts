import type { ServerConfig } from '../config/config.ts'

/** The header that sends the gateway's id to its servers. */
export const VIA_HEADER = 'toolgate-via'

/** Adds the header with the gateway's id to a server that has a URL. */
export function withVia(server: ServerConfig, via: string): ServerConfig {
  return server.url === undefined ? server : { ...server, headers: { ...server.headers, [VIA_HEADER]: via } }
}
