import { hostname, networkInterfaces } from 'node:os'
import { isLoopbackUrl, parseUrl } from './address.ts'

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
 * to another machine. And a key of a file is for the gateway of this file: `own` has its addresses.
 */
export function unreachedBy(
  key: { readonly isNamed: boolean },
  { url, isNamed }: CalledAddress,
  own: readonly string[],
): string | undefined {
  if (isThisMachine(url)) return undefined
  if (!isNamed) return `A file of this folder names ${url}, which is another machine: give the address with --url.`
  if (key.isNamed || own.some((one) => URL.canParse(one) && parseUrl(one).origin === url)) return undefined
  return `The keys of this folder are for its own gateway, and not for ${url}: give a key with --key or TOOLGATE_KEY, or add "publicUrl: ${url}" to the configuration.`
}

function isThisMachine(url: string): boolean {
  if (isLoopbackUrl(url)) return true
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const addresses = Object.values(networkInterfaces()).flatMap((list = []) => list.map(({ address }) => address))
  return host === hostname().toLowerCase() || addresses.includes(host)
}
