import { createHmac, timingSafeEqual } from 'node:crypto'

/** The header with which a local program sends a random challenge to `/healthz`. */
const CHALLENGE = 'toolgate-challenge'
const PROOF = 'toolgate-proof'
const WELL_FORMED = /^[\w-]{22,64}$/

/**
 * Returns the header that proves which gateway listens; `undefined` without a challenge. It includes the port, so
 * nobody can replay the proof of a gateway at another port.
 */
export function proveIdentity(
  secret: Uint8Array,
  challenge: string | readonly string[] | undefined,
  port: number | undefined,
): Readonly<Record<string, string>> | undefined {
  if (typeof challenge !== 'string' || !WELL_FORMED.test(challenge) || port === undefined) return undefined
  return { [PROOF]: proofOf(secret, challenge, port) }
}

export function challengeOf(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
  return headers[CHALLENGE]
}

/**
 * Returns whether the gateway with this secret listens at an address. The request contains no key, so another program
 * on the port learns nothing.
 */
export async function listensAt(address: string, secret: Uint8Array, timeoutMs: number): Promise<boolean> {
  const url = new URL('/healthz', address)
  const challenge = crypto.randomUUID()
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const { headers } = await fetch(url, { headers: { [CHALLENGE]: challenge }, redirect: 'error', signal })
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    const expected = Buffer.from(proofOf(secret, challenge, port))
    const proof = Buffer.from(headers.get(PROOF) ?? '')
    return proof.length === expected.length && timingSafeEqual(proof, expected)
  } catch {
    return false
  }
}

function proofOf(secret: Uint8Array, challenge: string, port: number): string {
  return createHmac('sha256', secret).update(`toolgate gateway\n${port}\n${challenge}`).digest('base64url')
}
