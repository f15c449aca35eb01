import type { Approval } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'

/** What receivers are told, in no format yet. Its texts come from outside: each format escapes them. */
export type NoticeMessage = ApprovalMessage | GroupMessage

/** One approval: that a call waits, or how that ended. */
export interface ApprovalMessage {
  readonly about: 'requested' | 'ended' | 'test'
  readonly id: string
  readonly status: Approval['status']
  readonly tool: string
  readonly user?: string
  readonly tenant?: string
  /** The OAuth client or the agent that asks. */
  readonly client?: string
  /** Why a person is asked, in the words of the rule's author. */
  readonly why: string
  /** The page on which a person decides. Absent if people's address of the gateway is not known. */
  readonly url?: string
  readonly requestedAt: number
  readonly expiresAt: number
  /** How many people must approve, if it is more than one. */
  readonly approvers?: number
  readonly decidedBy?: string
  readonly reason?: string
  /** As approvers see it. Only for receivers that get inputs. */
  readonly input?: unknown
}

/** Several approvals in one message, so that a chat is not flooded. */
export interface GroupMessage {
  readonly about: 'group'
  /** How many calls began to wait, and how many ended, since the messages before. */
  readonly waiting: number
  readonly ended: number
  /** The tools of the waiting calls, the most frequent first. */
  readonly tools: readonly string[]
  readonly url?: string
}

/** The longest text of one field. */
const MAX_FIELD_CHARS = 300
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]+/gu
/** Characters that nobody sees, and those that turn the text around them. */
const HIDDEN = /[\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** Returns a text from outside on one line, bounded, without characters that hide or turn text. */
export function plainText(text: string, maxChars = MAX_FIELD_CHARS): string {
  const plain = text.replaceAll(CONTROL, ' ').replaceAll(HIDDEN, '').toWellFormed().trim()
  return plain.length > maxChars ? `${plain.slice(0, maxChars).toWellFormed()}…` : plain
}

/** Returns the title of a message. Its parts from outside are plain text. */
export function titleOf(message: NoticeMessage): string {
  if (message.about === 'group') {
    const { waiting, ended } = message
    const waits = waiting === 0 ? [] : [`${waiting} more ${waiting === 1 ? 'call waits' : 'calls wait'} for approval`]
    const ends = ended === 0 ? [] : [`${ended} ${ended === 1 ? 'has' : 'have'} ended`]
    return [...waits, ...ends].join(', ')
  }
  const tool = plainText(message.tool)
  if (message.about === 'test') return 'A test of Toolgate: no call waits'
  return message.about === 'requested' ? `Approval needed: ${tool}` : `${ENDS[message.status]}: ${tool}`
}

const ENDS = {
  pending: 'Waiting',
  approved: 'Approved',
  consumed: 'Approved and used',
  rejected: 'Rejected',
  revoked: 'Revoked',
  expired: 'Expired',
} as const satisfies Record<Approval['status'], string>

/** Returns the facts of a message as labels and plain texts, for people. */
export function factsOf(message: NoticeMessage): readonly (readonly [label: string, text: string])[] {
  if (message.about === 'group')
    return message.tools.length === 0 ? [] : [['Tools', plainText(message.tools.join(', '))]]
  const { user, tenant, client, why, expiresAt, decidedBy, reason, about, input, approvers } = message
  const asks = [user ?? 'a caller without a user', ...(tenant === undefined ? [] : [`of ${tenant}`])].join(' ')
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Asked by', client === undefined ? asks : `${asks}, with ${client}`],
    ['Why', about === 'ended' ? undefined : why],
    ['Needs', about === 'ended' || approvers === undefined ? undefined : `${approvers} people`],
    ['Decided by', about === 'ended' ? decidedBy : undefined],
    ['Reason', about === 'ended' ? reason : undefined],
    ['Until', about === 'ended' ? undefined : timeOf(expiresAt)],
    ['Input', input === undefined ? undefined : toJsonText(input)],
  ]
  return facts.flatMap(([label, text = '']) => {
    const plain = plainText(text, label === 'Input' ? MAX_INPUT_CHARS : undefined)
    return plain === '' ? [] : [[label, plain] as const]
  })
}

/** The longest input in a chat. */
const MAX_INPUT_CHARS = 1_500

function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
