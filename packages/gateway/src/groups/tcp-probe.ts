import { connect } from 'node:net'
import type { Probe, ProbeAnswer, ProbeAsking } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/core/internal'

export interface TcpTarget {
  readonly host: string
  readonly port: number
}

export interface ProbeOptions {
  /** Default 1,000 ms. */
  readonly timeoutMs?: number | undefined
}

const TARGET = shapeOf<TcpTarget>({ host: true, port: true }, 'field')
const OPTIONS = shapeOf<ProbeOptions>({ timeoutMs: true })

/**
 * Asks whether something listens there. The connection is closed at once, and nothing is said over it.
 *
 * @example
 * const browser = { tools: ['browser:*'], availableWhen: [tcpProbe({ host: '127.0.0.1', port: 4444 })] }
 */
export function tcpProbe(target: TcpTarget, options: ProbeOptions = {}): Probe {
  checkShape('tcpProbe', target, TARGET)
  checkShape('tcpProbe', options, OPTIONS)
  const { timeoutMs } = options
  const address = toAddress(target)
  return {
    key: `tcp ${address}`,
    kind: 'tcp',
    what: address,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ask: (asking) => ask(target, asking),
  }
}

/** Gives `host:port`, with an IPv6 address in brackets. */
export function toAddress({ host, port }: TcpTarget): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function ask(target: TcpTarget, { signal }: ProbeAsking): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>()
  const socket = connect({ host: target.host, port: target.port, signal })
  socket.once('connect', () => settle(true))
  // `on`, not `once`: a socket that is torn down may tell of a second error.
  socket.on('error', (error: NodeJS.ErrnoException) =>
    settle({ available: false, reason: whyUnreachable(target, error) }),
  )
  return promise

  function settle(answer: ProbeAnswer): void {
    socket.destroy()
    resolve(answer)
  }
}

/** Says why there is no connection, in a clause. */
export function whyUnreachable(target: TcpTarget, error: NodeJS.ErrnoException): string {
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') return `nothing listens on ${toAddress(target)} (${code})`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${target.host} is not found (${code})`
  return `${toAddress(target)} cannot be reached (${code})`
}

/** A name with several addresses fails with the errors of all of them. */
function codeOf(error: NodeJS.ErrnoException): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined
  return error.code ?? (first as NodeJS.ErrnoException | undefined)?.code ?? error.name
}
