import { toJsonText } from '@toolgate/values/json'
import { type ApprovalMessage, type GroupMessage, type NoticeMessage, plainText } from '../message.ts'

/** The longest input in a message for programs, in characters of JSON. */
const MAX_INPUT_CHARS = 16_384
const TYPES = { requested: 'approval.requested', ended: 'approval.ended', test: 'notification.test' } as const

/** Returns a message for programs: the payload of Standard Webhooks. */
export function toJson(message: NoticeMessage, atMs: number): object {
  const timestamp = new Date(atMs).toISOString()
  return message.about === 'group'
    ? { type: 'approval.several', timestamp, data: groupData(message) }
    : { type: TYPES[message.about], timestamp, data: approvalData(message) }
}

function groupData({ about: _, ...data }: GroupMessage): object {
  return data
}

function approvalData({ about: _, input, ...message }: ApprovalMessage): object {
  const { requestedAt, expiresAt, why, tool, ...rest } = message
  const text = input === undefined ? undefined : toJsonText(input)
  return {
    ...rest,
    tool: plainText(tool),
    why,
    requestedAt: new Date(requestedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    ...(text === undefined ? {} : text.length <= MAX_INPUT_CHARS ? { input } : { inputOmitted: 'too_large' }),
  }
}
