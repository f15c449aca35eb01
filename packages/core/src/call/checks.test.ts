import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { REASONS } from '../decide/decision.ts'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { CHECKS, checksOf } from './checks.ts'

const GUIDE = path.join(import.meta.dirname, '../../../../docs/guide/the-call.md')

/** The rows of the guide's table of the order, without its links and numbers. */
function rowsOfGuide(): readonly string[] {
  const [, table = ''] = /^\| # \|.*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(readFileSync(GUIDE, 'utf8')) ?? []
  return table
    .trimEnd()
    .split('\n')
    .map((row) => row.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1').replace(/^\| \d+ /, ''))
}

function every(has: boolean): Parameters<typeof checksOf>[0] {
  return { stepUp: has, limits: has, slots: has, admission: has, lease: has, history: has }
}

describe('CHECKS', () => {
  it('are the rows of the guide’s table, in order', () => {
    const rows = CHECKS.map(({ name, asks, refusesWith }) => {
      const codes = refusesWith.map((code) => `\`${code}\``).join(', ')
      return `| ${name} | ${asks} | ${codes || 'the reason that decides'} |`
    })
    assert.deepEqual(rowsOfGuide().slice(1, CHECKS.length + 1), rows)
    assert.match(rowsOfGuide()[CHECKS.length + 1] ?? '', /^\| execute \|/)
  })

  it('have a name each, and refuse with reasons that exist', () => {
    assert.equal(new Set(CHECKS.map(({ name }) => name)).size, CHECKS.length)
    for (const { refusesWith } of CHECKS) for (const code of refusesWith) assert.ok(code in REASONS)
  })

  it('are asked as far as the approval where only that is asked for', () => {
    const { call, approval } = checksOf(every(true))
    assert.deepEqual(call, CHECKS)
    assert.deepEqual(approval, CHECKS.slice(0, approval.length))
    assert.equal(approval.at(-1)?.name, 'approval')
  })

  it('are left out where a gate has no step-up, limits, slots, admission, lease or rules about runs, and only those', () => {
    const { call, approval } = checksOf(every(false))
    const left = CHECKS.filter((check) => !call.includes(check)).map(({ name }) => name)
    assert.deepEqual(left, [
      'lease',
      'step up',
      'history',
      'peek at the limits',
      'slot',
      'admission',
      'take the limits',
      'enter the call',
      'the lease, at last',
    ])
    assert.equal(approval.at(-1)?.name, 'approval')
  })

  it('are fewer where a call is made for something else', () => {
    const lists = checksOf(every(true))
    const absentFrom = (list: keyof typeof lists) =>
      lists.call.flatMap(({ name }) => (lists[list].some((check) => check.name === name) ? [] : [name]))
    assert.deepEqual(absentFrom('compare'), [
      'peek at the limits',
      'take the limits',
      'take the approval',
      'enter the call',
    ])
    assert.deepEqual(absentFrom('complete'), ['take the approval'])
    assert.deepEqual(absentFrom('subscribe'), ['take the approval'])
    assert.deepEqual(
      lists.preview.map(({ name }) => name),
      ['decide', 'open', 'lease', 'step up', 'validate', 'history', 'decide with the input', 'peek at the limits'],
    )
  })

  it('ask a person where only the input says so, also the input that a hook put there', async () => {
    const ran: unknown[] = []
    const send = defineTool({ name: 'send', execute: (input) => void ran.push(input) })
    const gate = createGate({
      tools: [send],
      policy: { ask: [{ match: 'send', input: "input.to == 'eve'" }] },
      hooks: {
        beforeToolCall: ({ input }) => ((input as { to: string }).to === 'bob' ? { input: { to: 'eve' } } : undefined),
      },
    })
    const view = await gate.view({ user: 'vera' })
    const statusOf = async (to: string) => (await view.call({ tool: 'send', input: { to } })).status
    assert.deepEqual([await statusOf('eve'), await statusOf('bob'), ran], ['waiting', 'waiting', []])
    assert.deepEqual([await statusOf('ann'), ran], ['done', [{ to: 'ann' }]])
  })
})
