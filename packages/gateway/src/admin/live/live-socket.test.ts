import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Approval, memoryAudit } from '@toolgate/core'
import type { AuditQuery } from '@toolgate/core/audit'
import { redactor } from '@toolgate/values/redact'
import { auditEntry } from '@toolgate/testing'
import { WebSocket } from 'ws'
import type { LiveMessage } from '../../model/rows.ts'
import { createLiveSocket, type LiveDeps } from './live-socket.ts'

describe('createLiveSocket', () => {
  it('cuts off a client that does not read, and keeps telling the others', async (t) => {
    const { audit, live, open, openRaw } = await setup(t, { maxUnreadBytes: 64 * 1024 })
    const reader = await open()
    const stuck = await openRaw()
    stuck.pause()
    for (let i = 0; live.connections === 2 && i < 400; i++) {
      for (let n = 0; n < 200; n++) audit.write(auditEntry({ detail: 'x'.repeat(1000) }))
      await sleep(5)
    }
    assert.equal(live.connections, 1)
    const before = reader.count()
    audit.write(auditEntry())
    await until(() => reader.count() > before)
  })

  it('lets go of a client that does not answer a ping', async (t) => {
    const beat = manualHeart(t)
    const { live, open, openRaw } = await setup(t)
    const page = await open()
    await openRaw()
    assert.equal(live.connections, 2)
    for (let i = 0; i < 4; i++) {
      beat()
      await page.answered()
    }
    assert.equal(live.connections, 1)
    assert.equal(page.code(), undefined)
  })

  it('ends when the session of the person has ended', async (t) => {
    const beat = manualHeart(t)
    let holds = true
    const { open } = await setup(t, {}, () => holds)
    const page = await open()
    for (let i = 0; i < 3; i++) {
      beat()
      await page.answered()
    }
    assert.equal(page.code(), undefined)
    holds = false
    beat()
    await until(() => page.code() !== undefined)
    assert.equal(page.code(), 4401)
  })

  it('redacts an approval whatever its store has kept, and sends each of its states once', async (t) => {
    let approval: Approval = {
      id: 'a1',
      status: 'pending',
      tenant: undefined,
      user: 'vera',
      tool: 'pay',
      run: undefined,
      definitionHash: '',
      inputHash: '',
      requestedAt: 1,
      expiresAt: 2,
      input: { password: 'correct horse', n: 1 },
      reason: 'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    }
    const { audit, open } = await setup(t, { approvals: { get: async () => approval } })
    const page = await open()
    const asked = auditEntry({ event: 'tool_approval_required', approval_id: 'a1' })
    audit.write(asked)
    await until(() => page.of('approval').length === 1)
    assert.match(page.of('approval')[0] ?? '', /"n":1/)
    assert.doesNotMatch(page.of('approval')[0] ?? '', /correct horse|ghp_/)
    // It is asked for again, and then decided.
    audit.write(asked)
    audit.write(auditEntry({ event: 'tool_call', approval_id: 'a1' }))
    await until(() => page.of('audit').length === 3)
    approval = { ...approval, status: 'approved' }
    audit.write(auditEntry({ event: 'approval_decided', approval_id: 'a1' }))
    await until(() => page.of('approval').length === 2)
    assert.match(page.of('approval')[1] ?? '', /"approved"/)
  })

  it('subscribes to nothing without clients', async (t) => {
    const { counts, open } = await setup(t)
    assert.deepEqual(counts, { queries: 0, groups: 0, fleet: 0 })
    const pages = [await open(), await open()]
    assert.deepEqual([counts.groups, counts.fleet], [1, 1])
    for (const page of pages) page.close()
    await until(() => counts.groups === 0)
    const asked = counts.queries
    await sleep(100)
    assert.deepEqual(counts, { queries: asked, groups: 0, fleet: 0 })
    await open()
    assert.deepEqual([counts.groups, counts.fleet], [1, 1])
  })
})

async function setup(t: TestContext, options: Partial<LiveDeps> = {}, holds: () => boolean = () => true) {
  const audit = memoryAudit()
  const counts = { queries: 0, groups: 0, fleet: 0 }
  const subscribe = (what: 'groups' | 'fleet') => () => {
    counts[what]++
    return () => void counts[what]--
  }
  const live = createLiveSocket({
    admit: async () => ({ person: { user: 'owner' }, holds, onEnd: () => () => {} }),
    groups: () => [],
    groupWatch: { subscribe: subscribe('groups') },
    fleetGroups: { refresh: async () => {}, subscribe: subscribe('fleet') },
    approvals: { get: async () => undefined },
    audit: { query: (query: AuditQuery) => (counts.queries++, audit.query(query)) },
    redact: redactor,
    onFault: assert.ifError,
    ...options,
  })
  const server = createServer()
  server.on('upgrade', (request, socket, head) => void live.upgrade(request, socket, head))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const sockets: Socket[] = []
  const pages: WebSocket[] = []
  t.after(async () => {
    live.close()
    for (const socket of sockets) socket.destroy()
    for (const page of pages) page.terminate()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    audit,
    live,
    counts,
    async open() {
      const page = new WebSocket(`ws://127.0.0.1:${port}/`)
      pages.push(page)
      const texts: string[] = []
      let code: number | undefined
      page.on('message', (data: Buffer) => void texts.push(data.toString()))
      page.on('close', (closed) => (code = closed))
      page.on('error', () => {})
      await until(() => texts.length > 0)
      /** The server has heard what this page said to all that it was sent before. */
      const answered = () =>
        new Promise((resolve) => {
          page.once('pong', resolve)
          page.ping()
        })
      const of = (type: LiveMessage['type']) => texts.filter((text) => text.startsWith(`{"type":"${type}"`))
      return { count: () => texts.length, of, code: () => code, close: () => page.close(), answered }
    },
    /** One that never answers. */
    async openRaw() {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      socket.on('error', () => {})
      socket.write(
        'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
      await new Promise((resolve) => socket.once('data', resolve))
      return socket
    },
  }
}

/** Replaces the heartbeat by a manual one. */
function manualHeart(t: TestContext): () => void {
  let beat = () => {}
  t.mock.method(globalThis, 'setInterval', (given: () => void) => {
    beat = given
    return setTimeout(() => {})
  })
  return () => beat()
}

async function until(check: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !check(); i++) await sleep(5)
  assert.ok(check(), check.toString())
}
