import type { Approval, Gate } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { JsonRpcError } from '@toolgate/mcp'
import type { DecisionWaits } from './decision-waits.ts'
import type { McpRequest } from './request.ts'

export interface ApprovalDoorsOptions {
  readonly gate: Pick<Gate, 'approvals' | 'subscribe'>
  /** The origin at which people reach the gateway. Without it, clients get no links. */
  readonly publicUrl: string | undefined
  readonly waits: Pick<DecisionWaits, 'wait'>
  /** Whether the gateway is stopping. It then waits for no decisions. */
  readonly isStopping: () => boolean
  /** Sends a notification to the clients of a session (earlier revisions). */
  readonly notify?: (session: string, method: string, params: JsonObject) => void
  /** How long a request waits for a person's decision. Default 20 s. */
  readonly waitMs?: number
}

/** A URL elicitation (MCP 2025-11-25). 2026-07-28 has no `elicitationId`. */
interface UrlElicitation {
  readonly mode: 'url'
  readonly message: string
  readonly url: string
  readonly elicitationId: string
}

const DEFAULT_WAIT_MS = 20_000
/** How often decisions of other processes are looked for, as the gate does not announce them. */
const POLL_MS = 1000
/** The maximum number of shown approvals, and of sessions for each. */
const MAX_SHOWN = 1000
const MAX_SESSIONS = 16
/** The maximum number of approvals that are checked each time. */
const MAX_LOOKED_AT = 50
/** MCP 2025-11-25, "URL elicitation required". */
const URL_ELICITATION_REQUIRED = -32_042

/** The path of the page of an approval. */
export const APPROVAL_PATH = '/approvals/'

/** Returns the URL of an approval's page; `undefined` without a public URL. */
export function approvalUrl(id: string, publicUrl: string | undefined): string | undefined {
  return publicUrl === undefined ? undefined : new URL(`${APPROVAL_PATH}${encodeURIComponent(id)}`, publicUrl).href
}

/** Sends clients the link at which a person decides an approval. No answer of a client approves. */
export class ApprovalDoors {
  readonly #options: ApprovalDoorsOptions
  /** The sessions that received the link of an approval, by its id. Oldest first. */
  readonly #shown = new Map<string, Set<string>>()
  #isLooking = false

  constructor(options: ApprovalDoorsOptions) {
    this.#options = options
    options.gate.subscribe((notice) => {
      // An approval that needs several people is still pending after the first.
      if (notice.event === 'approval-decided' && notice.approval.status !== 'pending')
        this.#complete(notice.approval.id)
    })
  }

  /**
   * Returns the elicitation that opens the page of an approval; `undefined` without a public URL. The link contains the
   * approval's id and no secret: only people who may see the approval can open the page.
   */
  elicitationOf({ id }: Approval, name: string): UrlElicitation | undefined {
    const url = approvalUrl(id, this.#options.publicUrl)
    if (url === undefined) return undefined
    return {
      mode: 'url',
      message: `A person must approve this call of ${name} before it runs.`,
      url,
      elicitationId: id,
    }
  }

  /** Returns the error that asks a client of 2025-11-25 to open a link and to call again. */
  urlRequired(elicitation: UrlElicitation, { caller: { session } }: McpRequest): JsonRpcError {
    if (session !== undefined) this.#remember(elicitation.elicitationId, session)
    return { code: URL_ELICITATION_REQUIRED, message: elicitation.message, data: { elicitations: [elicitation] } }
  }

  #remember(id: string, session: string): void {
    const sessions = this.#shown.get(id) ?? new Set()
    this.#shown.delete(id)
    this.#shown.set(id, sessions.size < MAX_SESSIONS ? sessions.add(session) : sessions)
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > MAX_SHOWN && oldest !== undefined) this.#shown.delete(oldest)
    if (!this.#isLooking) void this.#look()
  }

  /** Checks the approvals that clients wait for, as another process may have decided. Repeats while there are any. */
  async #look(): Promise<void> {
    const { gate, isStopping } = this.#options
    this.#isLooking = true
    while (this.#shown.size > 0 && !isStopping()) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS).unref())
      for (const id of [...this.#shown.keys()].slice(0, MAX_LOOKED_AT)) {
        // If the store fails, it is asked again later.
        const approval = await Promise.resolve(gate.approvals.get(id)).catch(() => ({ status: 'pending' }))
        const sessions = this.#shown.get(id)
        if (approval?.status !== 'pending') this.#complete(id)
        else if (sessions) {
          this.#shown.delete(id)
          this.#shown.set(id, sessions)
        }
      }
    }
    this.#isLooking = false
  }

  /** Notifies the clients that a person has decided, so that they call again. */
  #complete(id: string): void {
    for (const session of this.#shown.get(id) ?? [])
      this.#options.notify?.(session, 'notifications/elicitation/complete', { elicitationId: id })
    this.#shown.delete(id)
  }

  /** Resolves when a person has decided, the client has gone, or the waiting time has passed. */
  async waitForDecision(id: string, signal: Cancelling): Promise<void> {
    const { gate, waits, waitMs = DEFAULT_WAIT_MS } = this.#options
    const approval = await gate.approvals.get(id)
    if (approval) await waits.wait(approval, signal, waitMs)
  }
}

/** Whether a client opens links for people. Forms are not used, as the agent's own client could answer them. */
export function isUrlClient({ link, protocolVersion }: McpRequest): boolean {
  const { era, capabilities } = link
  const opensUrls = typeof capabilities.elicitation === 'object' && typeof capabilities.elicitation.url === 'object'
  return opensUrls && (era === 'modern' || protocolVersion === '2025-11-25')
}
