import { connect } from 'node:net'

export interface TcpTarget {
  readonly host: string
  readonly port: number
}

/** What a probe found: `undefined` when something answers, else why not, in a clause without a full stop. */
export type ProbeAnswer = string | undefined

export interface ProbeOptions {
  readonly timeoutMs: number
  /** Ends the probe early; its answer is then worthless. */
  readonly signal: AbortSignal
}

/** Opens a TCP connection and closes it at once. Never rejects. */
export type TcpProbe = (target: TcpTarget, options: ProbeOptions) => Promise<ProbeAnswer>

/** Gives `host:port`, with an IPv6 address in brackets. */
export function toAddress({ host, port }: TcpTarget): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Asks the operating system whether something listens there. */
export const probeTcp: TcpProbe = (target, { timeoutMs, signal }) =>
  new Promise((resolve) => {
    const socket = connect({ host: target.host, port: target.port, signal })
    const deadline = setTimeout(settle, timeoutMs, `${toAddress(target)} did not answer within ${timeoutMs / 1000} s`)
    socket.once('connect', () => settle(undefined))
    // `on`, not `once`: a socket that is torn down may tell of a second error.
    socket.on('error', (error: NodeJS.ErrnoException) => settle(toReason(target, error.code ?? error.name)))

    function settle(answer: ProbeAnswer): void {
      clearTimeout(deadline)
      socket.destroy()
      resolve(answer)
    }
  })

function toReason(target: TcpTarget, code: string): string {
  if (code === 'ECONNREFUSED') return `nothing listens on ${toAddress(target)} (${code})`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${target.host} is not found (${code})`
  return `${toAddress(target)} cannot be reached (${code})`
}
