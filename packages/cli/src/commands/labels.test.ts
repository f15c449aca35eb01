import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { parse } from 'yaml'
import { serveScripted } from '../testing/scripted-api.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'labels-'))
after(() => rmSync(folder, { recursive: true }))

const SEND = {
  name: 'send_sms',
  description: 'Sends.',
  inputSchema: { type: 'object', properties: { to: { type: 'string' } } },
}
const READ = { name: 'read_mails', description: 'Reads.', inputSchema: { type: 'object' } }
const ODD = { name: 'crm', description: '', inputSchema: {} }

describe('toolgate labels', () => {
  const asked: string[] = []
  const tags: Record<string, readonly string[]> = { 'app:read_mails': [], 'app:crm': ['writes'] }
  const run = serveScripted(({ url = '' }) => {
    asked.push(url)
    const { pathname, searchParams } = new URL(url, 'http://gateway')
    if (pathname === '/api/callers') return { body: { callers: [{ user: 'vera' }] } }
    const rows = [SEND, READ, ODD].map(({ name, description }) => ({
      id: `app:${name}`,
      description,
      tags: tags[`app:${name}`] ?? [],
    }))
    if (pathname === '/api/tools') return { body: { as: 'vera', tools: rows } }
    const i = rows.findIndex(({ id }) => id === searchParams.get('tool'))
    return { body: { tool: rows[i], inputSchema: [SEND, READ, ODD][i]?.inputSchema, annotations: {} } }
  })

  it('asks a gateway for the tools of its first caller, and shows which are still unlabelled', async () => {
    const { code, out, err } = await run('labels')
    assert.deepEqual([code, err], [0, ''])
    assert.ok(asked.includes('/api/tools?as=vera'))
    assert.match(out, /^3 tools, 1 still unlabelled\n/)
    assert.match(out, /app:send_sms {2}egress {2}to /)
    assert.doesNotMatch(out, /read_mails|crm/)
    assert.match((await run('labels', '--all')).out, /app:crm +unclear/)
  })

  it('prints only YAML with --yaml, and data with --json', async () => {
    assert.deepEqual(parse((await run('labels', '--as', 'vera', '--yaml')).out), {
      labels: { trusted: [] },
      servers: { app: { tools: { send_sms: { tags: ['egress'], addressees: ['to'] } } } },
    })
    const { proposals } = JSON.parse((await run('labels', '--json')).out) as { proposals: { name: string }[] }
    assert.deepEqual(
      proposals.map(({ name }) => name),
      ['send_sms'],
    )
  })

  it('says that all are labelled', async () => {
    tags['app:send_sms'] = ['egress']
    assert.equal((await run('labels')).out, '3 tools, all labelled\n')
    delete tags['app:send_sms']
  })

  it('reads a file of tools', async () => {
    const file = path.join(folder, 'tools.json')
    for (const content of [[SEND], { tools: [SEND] }, { jsonrpc: '2.0', id: 1, result: { tools: [SEND] } }]) {
      writeFileSync(file, JSON.stringify(content))
      const { out } = await run('labels', '--file', file, '--server', 'sms', '--yaml')
      assert.deepEqual(Object.keys((parse(out) as { servers: object }).servers), ['sms'])
    }
  })

  it('refuses a file that holds no tools', async () => {
    const file = path.join(folder, 'other.json')
    for (const [content, problem] of [
      ['{', /cannot be read as JSON/],
      ['{"tool":[]}', /has no list of tools/],
      ['[{"id":1}]', /the tool at 0 has no name/],
    ] as const) {
      writeFileSync(file, content)
      const { code, err } = await run('labels', '--file', file)
      assert.equal(code, 2)
      assert.match(err, problem)
    }
    assert.match((await run('labels', '--file', path.join(folder, 'none.json'))).err, /cannot be read/)
  })
})
