import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ApprovalMessage, NoticeMessage } from '../message.ts'
import { toJson } from './json.ts'
import { toSlack } from './slack.ts'
import { toTeams } from './teams.ts'

const MESSAGE: ApprovalMessage = {
  about: 'requested',
  id: '5b8e0e5e-6a0c-4a9b-8f0e-0f2f6d1f2a3b',
  status: 'pending',
  tool: 'pay:send',
  user: 'ada',
  tenant: 'acme',
  client: 'Claude Desktop',
  why: 'Payments need a person.',
  url: 'https://tools.example.com/approvals/5b8e0e5e-6a0c-4a9b-8f0e-0f2f6d1f2a3b',
  requestedAt: Date.UTC(2026, 10, 28, 14, 0),
  expiresAt: Date.UTC(2026, 10, 28, 14, 10),
}
const HOSTILE =
  '<!channel> <@U012AB3CD> <https://evil.example|Approve> @here\n*Decided by:* boss `x` ~y~ _z_ [Approve](https://evil.example) <at>All</at> {{DATE(2026-01-01T00:00:00Z,SHORT)}} ${user} \u202egnp\u200b &amp;'
const LONG = 'a&'.repeat(50_000)

/** Messages of every kind, also of people who choose their own names. */
const MESSAGES: readonly NoticeMessage[] = [
  MESSAGE,
  { ...MESSAGE, about: 'ended', status: 'rejected', decidedBy: 'bo', reason: 'too much' },
  { ...MESSAGE, about: 'ended', status: 'expired' },
  { ...MESSAGE, about: 'test' },
  { about: 'group', waiting: 12, ended: 1, tools: ['pay:send (12)'], url: 'https://tools.example.com/#/approvals' },
  { ...MESSAGE, input: { cents: 150, to: HOSTILE } },
  ...[HOSTILE, LONG, '\n', ''].map((text) => ({
    ...MESSAGE,
    tool: text,
    user: text,
    tenant: text,
    client: text,
    why: text,
    input: { text },
  })),
]

describe('toSlack', () => {
  const isTaken = checkOf('slack-rules.test.json')

  it('makes messages that Slack takes', () => {
    for (const message of MESSAGES) isTaken(toSlack(message))
  })

  it('makes the message that people read', () => {
    const { text, blocks } = toSlack(MESSAGE) as { text: string; blocks: { text: { text: string } }[] }
    assert.equal(text, 'Approval needed: pay:send')
    assert.deepEqual(
      blocks.map((block) => block.text.text),
      [
        '*Approval needed: pay:send*',
        '*Asked by:* ada of acme, with Claude Desktop',
        '*Why:* Payments need a person.',
        '*Until:* 2026-11-28 14:10 UTC',
        `<${MESSAGE.url}|Open in Toolgate>`,
      ],
    )
  })

  it('has no mention, no link of others and no second line, whatever names say', () => {
    for (const message of MESSAGES.slice(5)) {
      for (const text of textsOf(toSlack(message))) {
        assert.doesNotMatch(text.replace(`<${MESSAGE.url}|Open in Toolgate>`, ''), /[<>\n\u202e\u200b]/)
        assert.doesNotMatch(text, /boss.*\*.*\*Decided|\*Decided by:\*/)
      }
    }
  })
})

describe('toTeams', () => {
  const isTaken = checkOf('teams-rules.test.json')

  it('makes messages that Teams takes, of at most 28 KB', () => {
    for (const message of MESSAGES) {
      isTaken(toTeams(message))
      assert.ok(Buffer.byteLength(JSON.stringify(toTeams(message))) < 28 * 1024)
    }
  })

  it('has texts without Markdown, functions and templates, whatever names say', () => {
    for (const message of MESSAGES)
      assert.doesNotMatch(JSON.stringify(toTeams(message)), /"TextBlock"|"FactSet"|\{\{|\$\{/)
  })
})

describe('toJson', () => {
  it('has the type, the time and the data of Standard Webhooks', () => {
    assert.deepEqual(toJson(MESSAGE, Date.UTC(2026, 10, 28, 14, 0, 1)), {
      type: 'approval.requested',
      timestamp: '2026-11-28T14:00:01.000Z',
      data: {
        id: MESSAGE.id,
        status: 'pending',
        tool: 'pay:send',
        user: 'ada',
        tenant: 'acme',
        client: 'Claude Desktop',
        why: 'Payments need a person.',
        url: MESSAGE.url,
        requestedAt: '2026-11-28T14:00:00.000Z',
        expiresAt: '2026-11-28T14:10:00.000Z',
      },
    })
  })

  it('leaves out an input that is too large, and says so', () => {
    const { data } = toJson({ ...MESSAGE, input: { text: LONG } }, 0) as { data: Record<string, unknown> }
    assert.deepEqual([data['input'], data['inputOmitted']], [undefined, 'too_large'])
  })
})

function checkOf(file: string): (message: object) => void {
  const check = new Ajv2020().compile(JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as object)
  return (message) => assert.ok(check(message), JSON.stringify(check.errors))
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}
