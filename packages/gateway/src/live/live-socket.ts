import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Approval, Caller, Gate } from '@toolgate/core'
import type { AuditReader, AuditRecord } from '@toolgate/core/audit'
import type { Redactor } from '@toolgate/core/redact'
import { WebSocket, WebSocketServer } from 'ws'
import type { Admitted } from '../api/access.ts'
import type { FailedLogins } from '../auth/failed-logins.ts'
import { ApiFault, toErrorResponse } from '../api/faults.ts'
import { maySee } from '../api/callers.ts'
import type { GroupRow, LiveMessage } from '../api/wire.ts'
import { redactApproval } from '../redaction.ts'
import { createAuditTail } from './audit-tail.ts'
import type { GroupWatch } from './group-watch.ts'

export interface LiveDeps {
  /** @throws {ApiFault} where this person may not listen */
  admit(request: Request): Admitted
  /** All groups, or those that are named. */
  groups(names?: readonly string[]): readonly GroupRow[]
  readonly groupWatch: Pick<GroupWatch, 'subscribe'>
  readonly audit: AuditReader
  readonly gate: Pick<Gate, 'subscribe'>
  readonly redact: Redactor
  readonly logins?: Pick<FailedLogins, 'failed'>
  readonly onFault: (error: unknown) => void
  /** Default 15,000 ms. */
  readonly heartbeatMs?: number
  /** Default 200. */
  readonly maxConnections?: number
  /** Of one person. Default 20. */
  readonly maxOfOne?: number
  /** Bytes that may wait for one client. Default 1 MiB. */
  readonly maxUnreadBytes?: number
}

export interface LiveSocket {
  /** Answers a request for the socket, also where it is refused. Never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>
  readonly connections: number
  close(): void
}

/** RFC 6455 §7.4.1; 4000 and up are an application's own. */
const CLOSE = { goingAway: 1001, unsupported: 1003, failed: 1011, ended: 4401 } as const
/** Nothing is expected of a client. */
const MAX_MESSAGE_BYTES = 1024

interface Connection {
  readonly socket: WebSocket
  readonly person: Caller
  readonly holds: () => boolean
  answered: boolean
}

/**
 * Gives the socket on which people see changes as they happen: groups, records and approvals.
 *
 * Each hears of what the HTTP API would show him, and nothing is read for nobody. Who does not read is cut off.
 */
export function createLiveSocket(deps: LiveDeps): LiveSocket {
  const { heartbeatMs = 15_000, maxConnections = 200, maxOfOne = 20, maxUnreadBytes = 1024 * 1024, onFault } = deps
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  })
  const tail = createAuditTail({ audit: deps.audit, onFault })
  const open = new Set<Connection>()
  let stop: (() => void) | undefined
  let starting: Promise<void> | undefined
  let round: object | undefined
  let isClosed = false

  return {
    get connections() {
      return open.size
    },
    async upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      try {
        const admitted = admit(request)
        server.handleUpgrade(request, socket, head, (opened) => void welcome(opened, admitted))
      } catch (error) {
        if (error instanceof ApiFault && error.keyId !== undefined)
          await deps.logins?.failed(request.socket.remoteAddress, error.keyId)
        await refuse(socket, error, deps)
      }
    },
    close() {
      isClosed = true
      for (const { socket } of open) end(socket, CLOSE.goingAway, 'the gateway stops')
      server.close()
    },
  }

  function admit(request: IncomingMessage): Admitted {
    const admitted = deps.admit(toRequest(request))
    if (isClosed) throw new ApiFault('too_many_connections', 'The gateway stops.')
    const ofOne = [...open].filter(({ person }) => person === admitted.person).length
    if (open.size >= maxConnections || ofOne >= maxOfOne)
      throw new ApiFault('too_many_connections', 'Too many pages listen already; close one.')
    return admitted
  }

  async function welcome(socket: WebSocket, { person, holds, onEnd }: Admitted): Promise<void> {
    const connection: Connection = { socket, person, holds, answered: true }
    open.add(connection)
    const leave = onEnd(() => end(socket, CLOSE.ended, 'the session has ended'))
    socket.on('pong', () => (connection.answered = true))
    socket.on('message', () => end(socket, CLOSE.unsupported, 'nothing is expected here'))
    // What ws finds wrong with a frame closes the socket by itself.
    socket.on('error', () => {})
    socket.on('close', () => {
      leave()
      open.delete(connection)
      if (open.size > 0) return
      stop?.()
      stop = starting = round = undefined
    })
    try {
      await (starting ??= start())
      // From here on nothing is missed.
      sendTo(connection, textOf({ type: 'groups', groups: deps.groups() }))
    } catch (error) {
      onFault(error)
      end(socket, CLOSE.failed, 'the audit cannot be read')
    }
  }

  /** Listens to everything, for as long as somebody listens here. */
  async function start(): Promise<void> {
    const own = (round = {})
    const leaveTail = await tail.subscribe((records) => records.forEach(tellRecord))
    // All may have left meanwhile, and others come, who have a round of their own.
    if (round !== own) return leaveTail()
    const leaveGroups = deps.groupWatch.subscribe((changes) =>
      tell(textOf({ type: 'groups', groups: deps.groups(changes.map(({ name }) => name)) })),
    )
    const leaveGate = deps.gate.subscribe((notice) => {
      if (notice.event === 'approval-requested' || notice.event === 'approval-decided') tellApproval(notice.approval)
    })
    const heart = setInterval(beat, heartbeatMs).unref()
    stop = () => {
      leaveTail()
      leaveGroups()
      leaveGate()
      clearInterval(heart)
    }
  }

  function tellRecord(record: AuditRecord): void {
    tell(textOf({ type: 'audit', record }), record)
  }

  function tellApproval(approval: Approval): void {
    tell(textOf({ type: 'approval', approval: redactApproval(approval, deps.redact) }), approval)
  }

  /** One text for all who may see what it is about. */
  function tell(text: string, about?: { readonly tenant?: string | undefined }): void {
    for (const connection of open) if (about === undefined || maySee(connection.person, about)) sendTo(connection, text)
  }

  function sendTo({ socket }: Connection, text: string): void {
    if (socket.readyState !== WebSocket.OPEN) return
    // Memory for a client that does not read is not to be had.
    if (socket.bufferedAmount > maxUnreadBytes) socket.terminate()
    else socket.send(text)
  }

  function beat(): void {
    for (const connection of open) {
      if (!connection.answered) connection.socket.terminate()
      else if (!connection.holds()) end(connection.socket, CLOSE.ended, 'the session has ended')
      else {
        connection.answered = false
        connection.socket.ping()
      }
    }
  }
}

const CLOSING_MS = 500

/** Closes with a reason, and without the client's help where it gives none. */
function end(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  const timer = setTimeout(() => socket.terminate(), CLOSING_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}

function textOf(message: LiveMessage): string {
  return JSON.stringify(message)
}

function toRequest({ headers, url = '/' }: IncomingMessage): Request {
  const sent = new Headers()
  for (const name of ['host', 'origin', 'authorization', 'cookie']) {
    const value = headers[name]
    if (typeof value === 'string') sent.set(name, value)
  }
  return new Request(new URL(url, 'http://gateway'), { headers: sent })
}

/** Answers in HTTP: there is no socket yet. */
async function refuse(socket: Duplex, error: unknown, { onFault, redact }: LiveDeps): Promise<void> {
  const response = toErrorResponse(error, onFault, redact)
  const body = await response.text()
  const headers = [...response.headers, ['connection', 'close'], ['content-length', String(Buffer.byteLength(body))]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${response.status} Refused\r\n${lines}\r\n${body}`, () => socket.destroy())
}
