const LONGEST_S = 31 * 24 * 60 * 60

/**
 * Gives the value of a `Retry-After` header, or of a hint like it, for a call that was rate limited: whole seconds,
 * rounded up, at least 1 (RFC 9110 §10.2.3, delay-seconds). Whoever waits so long does not come too early.
 *
 * @example
 * response.writeHead(429, { 'retry-after': `${retryAfterSeconds(answer.resetMs)}` })
 */
export function retryAfterSeconds(resetMs: number): number {
  // A store's answer may be nonsense; what is told to a client is a number of seconds all the same.
  return resetMs > 0 ? Math.min(Math.ceil(resetMs / 1000), LONGEST_S) : 1
}
