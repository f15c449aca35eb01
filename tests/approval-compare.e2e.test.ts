import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import type { ApprovalComparisonBody, ApprovalRow, ApprovalsBody } from '@toolgate/gateway'
import { loadConfig } from '@toolgate/gateway'
import { SERVERS } from '../packages/gateway/fixtures/servers.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'

/** A person compares what a call would write with what is there, as the real filesystem server reads it. */

const FILE = (folder: string, hostile: string) => `
listen: { port: 0 }
drainMs: 250
servers:
  files:
    command: ${JSON.stringify(process.execPath)}
    args: [${JSON.stringify(SERVERS.filesystem)}, ${JSON.stringify(folder)}]
    per: shared
    tools:
      write_file:
        compare: { text: input.content, with: read_text_file, input: { path: input.path } }
      edit_file:
        compare: { text: input.content, with: move_file, input: { path: input.path } }
  hostile:
    url: ${hostile}
    per: shared
    tools:
      save: { compare: { text: input.text, with: load, input: { name: input.name, deep: true } } }
callers:
  - { key: demo-viewer, id: one, user: viewer, roles: [viewer] }
  - { key: demo-admin, id: two, user: viewer, roles: [admin] }
  - { key: acme-agent, user: ada, tenant: acme, roles: [admin] }
  - { key: other-person, for: console, user: eve, tenant: other, roles: [approver] }
  - { key: no-approver, for: console, user: nobody }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
policy:
  - allow: ["*"]
    ask: ["files:write_file", "files:edit_file", "hostile:save"]
  - deny: [{ match: "files:read_text_file", when: "'admin' in caller.roles" }]
limits: ["files:read_text_file:1/3600", "hostile:load:1/3600"]
audit: { store: memory }
state: { store: memory }
`

let folder: ReturnType<typeof tempFolder>
let gateway: TestGateway
let hostile: RecordingServer
let file: string
let answer: Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>> = {}

before(async () => {
  folder = tempFolder()
  hostile = await startRecordingServer(
    [
      { name: 'save', inputSchema: { type: 'object' } },
      { name: 'load', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true }, run: () => answer },
    ],
    { era: 'modern' },
  )
  file = join(folder.path, 'toolgate.yaml')
  mkdirSync(join(folder.path, 'work'))
  writeFileSync(file, FILE(join(folder.path, 'work'), hostile.url))
  gateway = await startTestGateway(loadConfig(file))
})
after(async () => {
  await gateway?.close()
  await hostile?.close()
  folder?.remove()
})

const at = (name: string) => join(folder.path, 'work', name)
const list = async () => {
  const { approvals } = (await gateway.api('/api/approvals?status=pending')).body as ApprovalsBody
  return approvals
}
async function ask(key: string, tool: string, input: object): Promise<ApprovalRow> {
  const body = { tool, input }
  const { body: said } = await gateway.api('/api/call', { key, method: 'POST', body })
  const { approval } = said as { readonly approval?: Pick<Approval, 'id'> }
  const row = (await list()).find(({ id }) => id === approval?.id)
  assert.ok(row, JSON.stringify(said))
  return row
}
const compare = async ({ id }: Pick<Approval, 'id'>, key: string = KEYS.console) =>
  gateway.api(`/api/approvals/${id}/compare`, { method: 'POST', key })
const compared = async (approval: Pick<Approval, 'id'>) => (await compare(approval)).body as ApprovalComparisonBody

describe('what a waiting call would write, and what is there', () => {
  it('are shown with the time of the reading, which is recorded as read for the person', async () => {
    writeFileSync(at('a.txt'), 'one\ntwo\n')
    const approval = await ask(KEYS.viewer, 'files:write_file', { path: at('a.txt'), content: 'one\n2\n' })
    assert.equal(approval.mayCompare, true)
    assert.ok(!('asker' in approval), 'the id of a credential is for the gateway alone')
    const { atMs, ...shown } = await compared(approval)
    assert.ok(Math.abs(atMs - Date.now()) < 600_000)
    const named = { approval: approval.id, reader: 'files:read_text_file', field: 'input.content' }
    assert.deepEqual(shown, { ...named, present: 'one\ntwo\n', proposed: 'one\n2\n' })
    const { records } = (await gateway.api(`/api/audit?tool=files:read_text_file`)).body as {
      readonly records: readonly Record<string, unknown>[]
    }
    const said = records.map(({ event, purpose, detail, approval_id: id, user_id: user }) => [
      event,
      purpose,
      detail,
      id,
      user,
    ])
    const rest = ['compare', 'read for owner, who decides the approval', approval.id, 'viewer']
    assert.deepEqual(said.toReversed(), [
      ['tool_call', ...rest],
      ['tool_result', ...rest],
    ])
  })

  it('can be read again and again: it takes no limit of the caller', async () => {
    const approval = await ask(KEYS.viewer, 'files:write_file', { path: at('a.txt'), content: 'x' })
    for (let i = 0; i < 3; i++) assert.equal((await compared(approval)).present, readFileSync(at('a.txt'), 'utf8'))
  })

  it('are not shown where the caller may not read, and the person learns why', async () => {
    const approval = await ask(KEYS.admin, 'files:write_file', { path: at('a.txt'), content: 'y' })
    const { present, notShown } = await compared(approval)
    assert.equal(present, undefined)
    assert.match(notShown ?? '', /^files:read_text_file is refused to the caller: /)
  })

  it('are not shown where the tool reports an error', async () => {
    const approval = await ask(KEYS.viewer, 'files:write_file', { path: at('new.txt'), content: 'z' })
    assert.match((await compared(approval)).notShown ?? '', /reports an error: ENOENT/)
  })

  it('are not shown where the input was masked, as the difference would be false', async () => {
    const content = 'token: ghp_0123456789abcdefghijklmnopqrstuvwxyzAB'
    const approval = await ask(KEYS.viewer, 'files:write_file', { path: at('a.txt'), content })
    assert.match((await compared(approval)).notShown ?? '', /masked, so a difference would be false/)
  })

  it('have the secrets masked that are there', async () => {
    writeFileSync(at('env'), 'A=1\nGITHUB_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz\n')
    const approval = await ask(KEYS.viewer, 'files:write_file', { path: at('env'), content: 'A=2\n' })
    const { present, masked } = await compared(approval)
    assert.match(present ?? '', /^A=1\nGITHUB_TOKEN=\[redacted:/)
    assert.equal(masked, true)
  })

  it('are not shown if they are not text, or too long', async () => {
    writeFileSync(at('binary'), Buffer.from([0, 255, 1]))
    const binary = await ask(KEYS.viewer, 'files:write_file', { path: at('binary'), content: 'a' })
    assert.equal((await compared(binary)).notShown, 'What is there is not text.')
    writeFileSync(at('long'), 'a'.repeat(300_000))
    const long = await ask(KEYS.viewer, 'files:write_file', { path: at('long'), content: 'a' })
    assert.equal((await compared(long)).notShown, 'What is there is too long to be shown.')
  })

  it('are only for those who may decide it, while it can be decided', async () => {
    const approval = await ask('acme-agent', 'hostile:save', { name: 'n', text: 't' })
    for (const [key, status] of [
      ['other-person', 404],
      ['no-approver', 403],
      ['demo-console', 403],
    ] as const)
      assert.equal((await compare(approval, key)).status, status, key)
    assert.equal((await compare({ id: 'none' })).status, 404)
    const own = await ask(KEYS.viewer, 'hostile:save', { name: 'n', text: 't' })
    await gateway.api(`/api/approvals/${own.id}`, { method: 'POST', body: { decision: 'reject' } })
    assert.equal((await compare(own)).status, 409)
  })

  it('cannot be had with a tool that is not read-only, or that the configuration does not name', async () => {
    const edits = [{ oldText: 'one', newText: '1' }]
    const edit = await ask(KEYS.viewer, 'files:edit_file', { path: at('a.txt'), edits })
    assert.match((await compared(edit)).notShown ?? '', /no text in input\.content|not annotated as read-only/)
    const warnings = gateway.warnings().filter(({ code }) => code === 'compare_unusable')
    assert.deepEqual(
      warnings.map(({ path, text }) => [path, text]),
      [
        [
          'servers.files.tools.edit_file.compare',
          '"move_file" is not annotated as read-only; if it is, say so with "annotations: { readOnlyHint: true }" in its entry',
        ],
      ],
    )
  })
})

describe('a server that lies about what is there', () => {
  const cases: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp])[] = [
    [
      'several texts',
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      /did not return one text/,
    ],
    ['an image', { content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }, /did not return one text/],
    ['nothing', { content: [] }, /did not return one text/],
    [
      'an error of 10,000 characters',
      { isError: true, content: [{ type: 'text', text: 'e'.repeat(10_000) }] },
      /^.{400,500}…?$/,
    ],
    ['an unfinished text', { content: [{ type: 'text', text: '\ud800' }] }, /not text/],
  ]
  for (const [name, said, expected] of cases)
    it(`with ${name} shows nothing`, async () => {
      answer = said
      const approval = await ask(KEYS.viewer, 'hostile:save', { name, text: 't' })
      const { present, notShown } = await compared(approval)
      assert.equal(present, undefined)
      assert.match(notShown ?? '', expected)
    })

  it('gets only the fields that the configuration names', async () => {
    answer = { content: [{ type: 'text', text: '<b>there</b>\u202e' }] }
    hostile.forget()
    const approval = await ask(KEYS.viewer, 'hostile:save', { name: 'n', text: 'here', more: 1 })
    assert.equal((await compared(approval)).present, '<b>there</b>\u202e')
    assert.deepEqual(
      hostile.calls('load').map(({ params }) => params['arguments']),
      [{ name: 'n', deep: true }],
    )
  })

  it('is not asked where the call lacks a field', async () => {
    const approval = await ask(KEYS.viewer, 'hostile:save', { text: 'here' })
    assert.equal((await compared(approval)).notShown, 'The call has nothing in input.name, which hostile:load needs.')
  })

  it('is asked once at a time for one approval', async () => {
    const slow = Promise.withResolvers<Readonly<Record<string, unknown>>>()
    answer = slow.promise
    hostile.forget()
    const approval = await ask(KEYS.viewer, 'hostile:save', { name: 'slow', text: 'here' })
    const first = compared(approval)
    await until(() => hostile.calls('load').length > 0)
    assert.match((await compared(approval)).notShown ?? '', /being read already/)
    slow.resolve({ content: [{ type: 'text', text: 'there' }] })
    assert.equal((await first).present, 'there')
  })
})

describe('the caller who asked', () => {
  it('must still be accepted', async () => {
    const key = 'short-lived-key'
    const hashed = `sha256:${createHash('sha256').update(key).digest('hex')}`
    const text = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      text.replace('callers:', `callers:\n  - { keyHash: "${hashed}", user: shorty, roles: [viewer] }`),
    )
    assert.equal((await gateway.api('/api/reload', { method: 'POST', body: {} })).status, 200)
    answer = { content: [{ type: 'text', text: 'there' }] }
    const approval = await ask(key, 'hostile:save', { name: 'n', text: 'here' })
    assert.equal((await compared(approval)).present, 'there')
    writeFileSync(file, text)
    await gateway.api('/api/reload', { method: 'POST', body: {} })
    assert.match((await compared(approval)).notShown ?? '', /no longer accepted/)
  })

  it('is the one of MCP clients too', async () => {
    answer = { content: [{ type: 'text', text: 'there' }] }
    for (const era of [MODERN, '2025-11-25'] as const) {
      await gateway.call('viewer', era, 'hostile__save', { name: era, text: 'here' })
      const approval = (await list()).find(({ input }) => (input as { name?: string }).name === era)
      assert.equal((await compared(approval ?? { id: '' })).present, 'there', era)
    }
  })
})
