/** `GET /api/notifications` */
export interface NotificationsBody {
  readonly receivers: readonly ReceiverRow[]
}

/** A receiver of notifications. Its URL is a secret. */
export interface ReceiverRow {
  readonly name: string
  readonly format: 'slack' | 'teams' | 'json'
  /** The tenants. Absent: all. */
  readonly for?: readonly string[]
  /** Whether its messages have inputs. */
  readonly input: boolean
  /** The messages that are not sent yet. */
  readonly waiting: number
  /** When it last took a message. RFC 3339. */
  readonly sentAt?: string
  /** Present while it takes none. */
  readonly failing?: { readonly since: string; readonly why: string }
  /** When it is tried next, if it failed. */
  readonly nextAt?: string
}

/** The body of `POST /api/notifications/test`. Without a receiver, all of them get the example. */
export interface NotificationTestInput {
  readonly receiver?: string
}

export interface NotificationTestBody {
  readonly receivers: readonly ReceiverTestRow[]
}

/** What a receiver answered to the example. */
export interface ReceiverTestRow {
  readonly name: string
  readonly format: 'slack' | 'teams' | 'json'
  readonly isTaken: boolean
  readonly text: string
}
