import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { HaltRow } from '@toolgate/gateway'
import { serveScripted } from '../testing/scripted-api.ts'

const ROWS: readonly HaltRow[] = [
  row('1111', { user: 'vera', tool: 'files:*' }, { tools: 2, people: 1 }),
  row('2222', { tenant: 'acme' }, { tools: 14, people: 3 }),
  row('3333', { all: true }, { tools: 14 }),
]

function row(id: string, target: HaltRow['target'], reach: HaltRow['reach']): HaltRow {
  return { id, target, reason: 'stolen \u001b[2Jphone', by: 'olga', since: 0, reach, mayRelease: true }
}

interface Posted {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly body: unknown
}

describe('toolgate halt, release and halts', () => {
  const posted: Posted[] = []
  let halted = ROWS
  let answered: HaltRow
  let tenant: string | undefined
  const run = serveScripted(({ method, url, body }) => {
    if (method !== 'GET') posted.push({ method, url, body })
    if (url === '/api/session') return { body: { user: 'olga', roles: [], ...(tenant ? { tenant } : {}) } }
    if (method === 'GET') return { body: { halts: halted, mayHalt: true } }
    if (method === 'POST') return { body: answered }
    const known = ROWS.find(({ id }) => url?.endsWith(`/${id}`))
    const fault = { error: { code: 'halt_unknown', message: 'Nothing is halted under that id.' } }
    return known ? { body: known } : { status: 404, body: fault }
  })
  beforeEach(() => {
    posted.length = 0
    halted = ROWS
    answered = ROWS[0] as HaltRow
    tenant = undefined
  })

  it('halts the combined target, and prints what it matches now and how to release it', async () => {
    assert.equal((await run('halt', '--user', 'vera')).code, 0)
    assert.deepEqual(posted.splice(0)[0]?.body, { user: 'vera' })
    const { code, out, err } = await run('halt', '--user', 'vera', '--tool', 'files:*', '--reason', 'stolen phone')
    assert.deepEqual([code, err], [0, ''])
    assert.equal(
      out,
      `halted  user vera, tool files:*: 2 tools, 1 person now
To undo it: toolgate release --id 1111
`,
    )
    assert.deepEqual(posted, [
      { method: 'POST', url: '/api/halts', body: { user: 'vera', tool: 'files:*', reason: 'stolen phone' } },
    ])
    assert.deepEqual(JSON.parse((await run('halt', '--all', '--reason', 'fire', '--json')).out), ROWS[0])
    assert.deepEqual(posted[1]?.body, { all: true, reason: 'fire' })
  })

  it('says where it is in force: on all replicas, or not confirmed by some and by when', async () => {
    const by = Date.UTC(2026, 10, 23, 12, 0, 3)
    for (const [inForce, line] of [
      [{ replicas: 3, unconfirmed: [], by }, 'In force on all 3 replicas.'],
      [{ replicas: 1, unconfirmed: [], by }, 'In force on 1 replica.'],
      [{ replicas: 2, unconfirmed: ['r2'], by }, 'Not confirmed by r2; in force there by 12:00:03Z at the latest.'],
    ] as const) {
      answered = { ...(ROWS[2] as HaltRow), inForce }
      assert.equal((await run('halt', '--all', '--reason', 'r')).out.split('\n')[1], line)
    }
  })

  it('warns loudly of a target that names nothing now, which is halted', async () => {
    answered = row('4444', { tool: 'files:raed' }, { tools: 0, nearestTools: ['files:read', 'files:real'] })
    const tool = await run('halt', '--tool', 'files:raed', '--reason', 'r')
    assert.equal(tool.code, 0)
    assert.equal(
      tool.err,
      `WARNING  It stops nothing now: no tool is "files:raed". Did you mean "files:read" or "files:real"?
It stays in effect for whoever and whatever matches later.
`,
    )
    answered = row('5555', { user: 'vear', tenant: 'acme' }, { tools: 0, people: 0, nearestPeople: ['vera of acme'] })
    assert.match((await run('halt', '--user', 'vear')).out, /^halted {2}user vear, tenant acme: nothing now\n/)
    const user = await run('halt', '--user', 'vear', '--tenant', 'acme', '--reason', 'r', '--json')
    assert.equal(user.code, 0)
    assert.match(
      user.err,
      /^WARNING {2}It stops nothing now: nobody named "vear" of "acme" was seen\. Did you mean "vera of acme"\?/,
    )
    assert.equal((JSON.parse(user.out) as HaltRow).id, '5555')
  })

  it('releases by id or by target', async () => {
    assert.equal((await run('release', '--id', '2222')).out, 'released  tenant acme (stolen \\u001b[2Jphone)\n')
    assert.equal((await run('release', '--tool', 'files:*', '--user', 'vera')).code, 0)
    assert.equal((await run('release', '--all')).code, 0)
    assert.deepEqual(
      posted.map(({ method, url: path }) => [method, path]),
      [
        ['DELETE', '/api/halts/2222'],
        ['DELETE', '/api/halts/1111'],
        ['DELETE', '/api/halts/3333'],
      ],
    )
  })

  it('names within the tenant for a person who has one', async () => {
    tenant = 'acme'
    halted = [row('1111', { user: 'vera', tenant: 'acme' }, { tools: 1 }), ROWS[1] as HaltRow]
    await run('release', '--user', 'vera')
    await run('release', '--all')
    assert.deepEqual(
      posted.map(({ url: path }) => path),
      ['/api/halts/1111', '/api/halts/2222'],
    )
  })

  it('names the tenant of a halt that is asked for without it', async () => {
    halted = [row('1111', { user: 'vera', tenant: 'acme' }, { tools: 1 })]
    const { code, err } = await run('release', '--user', 'vera')
    assert.equal(code, 2)
    assert.match(err, /no such halt of all tenants: user vera\.\nIt is halted in "acme": add --tenant acme\./)
    assert.deepEqual(posted, [])
  })

  it('lists the halts, and escapes their texts', async () => {
    const { code, out } = await run('halts')
    assert.equal(code, 0)
    assert.equal(
      out,
      `ID    HALTED                   NOW                 SINCE                     BY    REASON
1111  user vera, tool files:*  2 tools, 1 person   1970-01-01T00:00:00.000Z  olga  stolen \\u001b[2Jphone
2222  tenant acme              14 tools, 3 people  1970-01-01T00:00:00.000Z  olga  stolen \\u001b[2Jphone
3333  everything               14 tools            1970-01-01T00:00:00.000Z  olga  stolen \\u001b[2Jphone
`,
    )
    halted = []
    assert.equal((await run('halts')).out, 'Nothing is halted.\n')
    assert.deepEqual(JSON.parse((await run('halts', '--json')).out), { halts: [], mayHalt: true })
  })

  const wrong: [string[], RegExp][] = [
    [
      ['halt', '--reason', 'r'],
      /halt needs --user <user>, --session <session>, --tool <selector>, --tenant <tenant> or --all/,
    ],
    [['halt', '--user', '', '--reason', 'r'], /--user is empty/],
    [['halt', '--all', '--user', 'vera', '--reason', 'r'], /Give --all or --user, not both/],
    [['release'], /release needs --id <id>, --user <user>/],
    [['release', '--user', 'omar'], /There is no such halt: user omar\.\n"toolgate halts" lists the halts\./],
    [['release', '--user', 'vera'], /There is no such halt/],
    [['release', '--id', '1111', '--all'], /Give --id or --all, not both/],
    [['release', '--id', '9999'], /Nothing is halted under that id/],
  ]
  for (const [args, message] of wrong) {
    it(`refuses ${args.join(' ')}`, async () => {
      const { code, err } = await run(...args)
      assert.equal(code, 2)
      assert.match(err, message)
      assert.deepEqual(
        posted.filter(({ url: path }) => !path?.endsWith('9999')),
        [],
      )
    })
  }
})
