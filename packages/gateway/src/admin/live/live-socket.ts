import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Approval, Caller } from '@toolgate/core'
import type { AuditReader, AuditRecord } from '@toolgate/core/audit'
import type { Approvals } from '@toolgate/core/call'
import { toJsonText } from '@toolgate/values/json'
import type { Redactor } from '@toolgate/values/redact'
import { WebSocket, WebSocketServer } from 'ws'
import type { Admitted } from '../http/access.ts'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import { ApiFault, toErrorResponse } from '../../model/faults.ts'
import { maySee } from '../http/callers.ts'
import { approvalFor, recordFor } from '../http/rule-text.ts'
import type { GroupRow, LiveMessage } from '../../model/rows.ts'
import { toRequest } from '../../util/to-request.ts'
import { redactApproval } from '../../config/redaction.ts'
import { type AuditTail, createAuditTail } from './audit-tail.ts'
import { ApprovalNews } from './approval-news.ts'
import type { FleetGroups } from '../groups/fleet-groups.ts'
import type { GroupWatch } from '../groups/group-watch.ts'

export interface LiveDeps {
  /** Rejects with an `ApiFault` if the person may not listen. */
  admit(request: Request): Promise<Admitted>
  /** Returns the rows of all groups, or of the named ones. */
  groups(names?: readonly string[]): readonly GroupRow[]
  readonly groupWatch: Pick<GroupWatch, 'subscribe'>
  /** Absent if this gateway runs alone. */
  readonly fleetGroups?: Pick<FleetGroups, 'refresh' | 'subscribe'> | undefined
  readonly audit: AuditReader
  readonly approvals: Pick<Approvals, 'get'>
  readonly redact: Redactor
  readonly logins?: Pick<FailedLogins, 'failed'>
  readonly onFault: (error: unknown) => void
  /** How often new records are read. Default 40 ms. */
  readonly pollMs?: number
  /** The interval of heartbeats. Default 15,000 ms. */
  readonly heartbeatMs?: number
  /** The maximum number of connections. Default 200. */
  readonly maxConnections?: number
  /** The maximum for one person. Default 20. */
  readonly maxOfOne?: number
  /** The maximum number of unsent bytes for one client. Default 1 MiB. */
  readonly maxUnreadBytes?: number
}

export interface LiveSocket {
  /** Answers an upgrade request, with a socket or a refusal. Never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>
  readonly connections: number
  close(): void
}

/** RFC 6455 §7.4.1; codes from 4000 are for applications. */
const CLOSE = { goingAway: 1001, unsupported: 1003, failed: 1011, ended: 4401 } as const
/** The maximum size of a client's message. Clients send none. */
const MAX_MESSAGE_BYTES = 1024
const MAX_UNREAD_BYTES = 1024 * 1024

interface LiveConnection {
  readonly socket: WebSocket
  readonly person: Caller
  readonly holds: () => boolean
  answered: boolean
}

/**
 * Returns the socket that sends changes of groups, records and approvals as they happen, from all replicas that share
 * an audit. Approvals are found through their records, so all changes are in one order.
 *
 * Each person receives what the HTTP API would show them. Without listeners, nothing is read. A client that does not
 * read is disconnected.
 */
export function createLiveSocket(deps: LiveDeps): LiveSocket {
  return new WebSockets(deps)
}

class WebSockets implements LiveSocket {
  readonly #deps: LiveDeps
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  })
  readonly #tail: AuditTail
  readonly #open = new Set<LiveConnection>()
  /** Unsubscribes from the gateway. */
  #stop: (() => void) | undefined
  #starting: Promise<void> | undefined
  /** Identifies the current subscription. It is replaced when all clients have left. */
  #round: object | undefined
  #isClosed = false

  constructor(deps: LiveDeps) {
    this.#deps = deps
    const { audit, onFault, pollMs } = deps
    this.#tail = createAuditTail(audit, onFault, pollMs)
  }

  get connections(): number {
    return this.#open.size
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    try {
      const admitted = await this.#admit(request)
      this.#server.handleUpgrade(request, socket, head, (opened) => void this.#welcome(opened, admitted))
    } catch (error) {
      if (error instanceof ApiFault && error.keyId !== undefined) await this.#deps.logins?.failed(request, error.keyId)
      await refuse(socket, error, this.#deps)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { socket } of this.#open) end(socket, CLOSE.goingAway, 'the gateway stops')
    this.#server.close()
  }

  async #admit(request: IncomingMessage): Promise<Admitted> {
    const { maxConnections = 200, maxOfOne = 20 } = this.#deps
    const admitted = await this.#deps.admit(toRequest(request))
    if (this.#isClosed) throw new ApiFault('too_many_connections', 'The gateway stops.')
    const ofOne = [...this.#open].filter(({ person }) => person === admitted.person).length
    if (this.#open.size >= maxConnections || ofOne >= maxOfOne)
      throw new ApiFault('too_many_connections', 'Too many pages listen already; close one.')
    return admitted
  }

  async #welcome(socket: WebSocket, { person, holds, onEnd }: Admitted): Promise<void> {
    const connection: LiveConnection = { socket, person, holds, answered: true }
    this.#open.add(connection)
    const unsubscribe = onEnd(() => end(socket, CLOSE.ended, 'the session has ended'))
    socket.on('pong', () => (connection.answered = true))
    socket.on('message', () => end(socket, CLOSE.unsupported, 'nothing is expected here'))
    // ws closes the socket by itself when a frame is invalid.
    socket.on('error', () => {})
    socket.on('close', () => {
      unsubscribe()
      this.#leave(connection)
    })
    try {
      await (this.#starting ??= this.#start())
      // From here on, the client misses nothing.
      this.#sendTo(connection, textOf({ type: 'groups', groups: this.#deps.groups() }))
    } catch (error) {
      this.#deps.onFault(error)
      end(socket, CLOSE.failed, 'the audit cannot be read')
    }
  }

  #leave(connection: LiveConnection): void {
    this.#open.delete(connection)
    if (this.#open.size > 0) return
    this.#stop?.()
    this.#stop = this.#starting = this.#round = undefined
  }

  /** Subscribes to the gateway while there are clients. */
  async #start(): Promise<void> {
    const { approvals, groupWatch, fleetGroups, onFault, heartbeatMs = 15_000 } = this.#deps
    const own = (this.#round = {})
    const news = new ApprovalNews(approvals, (approval) => this.#sendApproval(approval), onFault)
    const leaveTail = await this.#tail.subscribe((records) => {
      for (const record of records) this.#sendRecord(record)
      news.read(records)
    })
    await fleetGroups?.refresh().catch(onFault)
    // All clients may have left during the await. If new ones came, they have started their own subscription.
    if (this.#round !== own) return leaveTail()
    const leaveGroups = groupWatch.subscribe((changes) => this.#sendGroups(changes.map(({ name }) => name)))
    const leaveOthers = fleetGroups?.subscribe((names) => this.#sendGroups(names))
    const heart = setInterval(() => this.#beat(), heartbeatMs).unref()
    this.#stop = () => {
      leaveTail()
      leaveGroups()
      leaveOthers?.()
      news.close()
      clearInterval(heart)
    }
  }

  #sendGroups(names: readonly string[]): void {
    const text = textOf({ type: 'groups', groups: this.#deps.groups(names) })
    for (const connection of this.#open) this.#sendTo(connection, text)
  }

  #sendRecord(record: AuditRecord): void {
    this.#sendEach((person) => ({ type: 'audit', record: recordFor(person, record) }), record)
  }

  #sendApproval(approval: Approval): void {
    const shown = redactApproval(approval, this.#deps.redact)
    this.#sendEach((person) => ({ type: 'approval', approval: approvalFor(person, shown) }), approval)
  }

  /** Sends a message to all who may see its subject. All people of one tenant receive the same text. */
  #sendEach(messageFor: (person: Caller) => LiveMessage, about: { readonly tenant?: string | undefined }): void {
    const texts = new Map<string | undefined, string>()
    for (const connection of this.#open) {
      const { person } = connection
      if (!maySee(person, about)) continue
      const text = texts.get(person.tenant) ?? textOf(messageFor(person))
      texts.set(person.tenant, text)
      this.#sendTo(connection, text)
    }
  }

  #sendTo({ socket }: LiveConnection, text: string): void {
    if (socket.readyState !== WebSocket.OPEN) return
    // A client that does not read must not fill the memory.
    if (socket.bufferedAmount > (this.#deps.maxUnreadBytes ?? MAX_UNREAD_BYTES)) socket.terminate()
    else socket.send(text)
  }

  #beat(): void {
    for (const connection of this.#open) {
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

/** Closes a socket with a reason. A client that does not answer is terminated. */
function end(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  const timer = setTimeout(() => socket.terminate(), CLOSING_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}

function textOf(message: LiveMessage): string {
  return toJsonText(message)
}

/** Refuses an upgrade in HTTP, as there is no socket yet. */
async function refuse(socket: Duplex, error: unknown, { onFault, redact }: LiveDeps): Promise<void> {
  const response = toErrorResponse(error, onFault, redact)
  const body = await response.text()
  const headers = [...response.headers, ['connection', 'close'], ['content-length', String(Buffer.byteLength(body))]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${response.status} Refused\r\n${lines}\r\n${body}`, () => socket.destroy())
}
