import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** The parts of a request that identify its source. */
export interface RequestSource {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** Finds the addresses of clients behind proxies. */
export interface ClientAddresses {
  /**
   * Returns the address of the client. Behind a configured proxy, this is the last address in `X-Forwarded-For` that is
   * not a configured proxy. The header of anybody else is ignored, as any client can send it.
   */
  of(request: RequestSource): string | undefined
  /** Whether an address belongs to a configured proxy. */
  isProxy(address: string | undefined): boolean
}

/** @throws {RangeError} for an entry that `isProxyRange` rejects */
export function createClientAddresses(proxies: readonly string[] = []): ClientAddresses {
  const listed = new BlockList()
  for (const proxy of proxies) addRange(listed, proxy)
  const isProxy = (address: string | undefined): boolean => {
    const family = address === undefined ? 0 : isIP(address)
    return family !== 0 && listed.check(address as string, family === 6 ? 'ipv6' : 'ipv4')
  }
  return {
    isProxy: (address) => isProxy(toPlain(address)),
    of({ headers, socket }) {
      let address = toPlain(socket.remoteAddress)
      if (proxies.length === 0 || !isProxy(address)) return address
      const hops = String(headers['x-forwarded-for'] ?? '').split(',')
      while (isProxy(address) && hops.length > 0) {
        const hop = toPlain(hops.pop()?.trim())
        // An entry that is not an address cannot come from a supported proxy.
        if (hop === undefined || isIP(hop) === 0) break
        address = hop
      }
      return address
    },
  }
}

/** Whether a text is an address, or a range such as `10.0.0.0/8` that does not include every address. */
export function isProxyRange(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0 || address.includes('%')) return false
  const bits = family === 6 ? 128 : 32
  return prefix === undefined || (/^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= bits)
}

function addRange(listed: BlockList, text: string): void {
  if (!isProxyRange(text)) throw new RangeError(`"${text}" is not an address or a range of addresses`)
  const [address = '', prefix] = text.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (prefix === undefined) listed.addAddress(address, family)
  else listed.addSubnet(address, Number(prefix), family)
}

/** The form of an IPv4 client's address on a socket that listens on IPv6 too. */
const IPV4_IN_IPV6 = /^::ffff:(?=[\d.]+$)/i

function toPlain(address: string | undefined): string | undefined {
  return address?.replace(IPV4_IN_IPV6, '').replace(/%.*$/, '')
}
