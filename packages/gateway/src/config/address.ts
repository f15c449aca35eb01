export interface Address {
  readonly host: string
  readonly port: number
}

const HOST_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/

/** Gives the address that `host:port`, `[::1]:port` or a bare port (of 127.0.0.1) names; `undefined` for anything else. */
export function parseAddress(text: string | number): Address | undefined {
  const bare = typeof text === 'number' ? String(text) : text
  const [, v6, name, digits] = /^\d{1,5}$/.test(bare)
    ? [undefined, undefined, '127.0.0.1', bare]
    : (HOST_PORT.exec(bare) ?? [])
  const host = v6 ?? name
  const port = Number(digits)
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

/** Answers whether only this machine can reach a listener on that host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
