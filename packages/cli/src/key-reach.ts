import { hostname, networkInterfaces } from 'node:os'
import { isLoopbackUrl } from './address.ts'

/** The address that a command calls, and who named it. */
export interface CalledAddress {
  readonly url: string
  /** Whether the user named it with `--url` or TOOLGATE_URL. Otherwise a file of the folder did. */
  readonly isNamed: boolean
}

/**
 * Returns why a key must not be sent to an address; `undefined` if it may be.
 *
 * Keys reach this machine, and what the user names. A file may come from somebody else, so it cannot send the user's keys
 * to another machine.
 */
export function unreachedBy({ url, isNamed }: CalledAddress): string | undefined {
  if (isNamed || isThisMachine(url)) return undefined
  return `A file of this folder names ${url}, which is another machine: give the address with --url.`
}

function isThisMachine(url: string): boolean {
  if (isLoopbackUrl(url)) return true
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const addresses = Object.values(networkInterfaces()).flatMap((list = []) => list.map(({ address }) => address))
  return host === hostname().toLowerCase() || addresses.includes(host)
}
