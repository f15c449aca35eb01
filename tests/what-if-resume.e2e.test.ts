import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createGate, defineTool, memoryAudit } from '@toolgate/core'
import { formatSnapshot, takeSnapshot, type WhatIf } from '@toolgate/change'
import { tempFolder } from './support/gateway.ts'

const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const EVERY = 250
const CALLS = 20_000
const FILE = `
servers: { files: { command: node, per: shared } }
callers: [{ key: demo-viewer-key-of-a-test, user: viewer, roles: [viewer] }]
policy: [{ name: base, allow: ["*"] }]
audit: { store: memory }
state: { store: memory }
`

describe('toolgate what-if --resume', () => {
  for (const [which, rules, since] of [
    ['calls alone', FILE.replace('allow: ["*"]', 'allow: ["*"], deny: ["files:write"]'), '2026-01-01'],
    // As a time ago, it is another moment at the second start.
    ['what earlier calls have used', `${FILE}limits: ["files:*:5/60"]\n`, '20000d'],
  ] as const)
    it(`goes on after it was killed, and says the same as one that was not, where rules read ${which}`, async (t) => {
      const folder = tempFolder()
      t.after(() => folder.remove())
      const at = (name: string, text?: string) => {
        const path = join(folder.path, name)
        if (text !== undefined) writeFileSync(path, text)
        return path
      }
      const recorded = await recordCalls()
      const { catalog } = recorded
      let { lines } = recorded
      const state = at('counted.json')
      let isSlow = true
      const server = createServer((request, response) => {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' })
        const after = Number(new URL(request.url ?? '', 'http://gateway').searchParams.get('after') ?? 0)
        if (isSlow) dribble(lines, response, () => existsSync(state))
        else response.end(lines.slice(after).join(''))
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      t.after(() => server.close())
      const { port } = server.address() as AddressInfo
      const configs = ['--config', at('old.yaml', FILE), '--policy', at('new.yaml', rules)]
      const start = (more: readonly string[] = [], file = at('c', catalog)) =>
        spawn(
          process.execPath,
          [
            '--conditions=toolgate-source',
            BIN,
            'what-if',
            ...configs,
            '--catalog',
            file,
            '--since',
            since,
            '--json',
            ...more,
          ],
          {
            env: {
              ...process.env,
              TOOLGATE_URL: `http://127.0.0.1:${port}`,
              TOOLGATE_KEY: 'a-key-of-a-test-0123456789',
            },
            stdio: ['ignore', 'pipe', 'pipe'],
          },
        )
      const killed = start(['--resume', state])
      await stateIn(state)
      killed.kill('SIGKILL')
      await once(killed, 'close')
      isSlow = false
      const { lastSeq } = JSON.parse(readFileSync(state, 'utf8')).state
      assert.ok(lastSeq > 0 && lastSeq < CALLS, String(lastSeq))
      const refused = async (pattern: RegExp, file?: string) => {
        const { code, out, err } = await endOf(start(['--resume', state], file))
        assert.deepEqual([code, out], [2, ''])
        assert.match(err + out, pattern)
        assert.equal(existsSync(state), true)
      }
      await refused(
        /counted\.json is of another what-if/,
        at('other', catalog.replace(/"name": *"read"/, '$&, "description": "x"')),
      )
      lines = recorded.lines.map((line) => line.replaceAll('"ts":"2026', '"ts":"2025'))
      await refused(/counted\.json is of another audit, or of records that are gone/)
      lines = recorded.lines.slice(0, lastSeq - 1)
      await refused(/counted\.json is of another audit, or of records that are gone/)
      ;({ lines } = recorded)
      const resumed = await outputOf(start(['--resume', state]))
      assert.equal(existsSync(state), false)
      const whole = await outputOf(start())
      assert.ok((JSON.parse(whole) as WhatIf).changed > 0)
      assert.deepEqual(JSON.parse(resumed), JSON.parse(whole))
    })
})

/** Sends records, 250 at a time, until the command has kept what it has counted; never the last of them. */
function dribble(lines: readonly string[], response: ServerResponse, isKept: () => boolean): void {
  let sent = 0
  const timer = setInterval(() => {
    if (response.destroyed) return clearInterval(timer)
    if (isKept() || sent + EVERY >= lines.length) return
    response.write(lines.slice(sent, (sent += EVERY)).join(''))
  }, 100)
}

async function stateIn(file: string): Promise<void> {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 50))
}

async function endOf(child: ReturnType<typeof spawn>) {
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, err }
}

async function outputOf(child: ReturnType<typeof spawn>): Promise<string> {
  const { code, out, err } = await endOf(child)
  assert.deepEqual([code, err], [0, ''])
  return out
}

async function recordCalls() {
  const tools = ['read', 'write'].map((name) => defineTool({ namespace: 'files', name, execute: () => 'ok' }))
  const audit = memoryAudit({ capacity: 2 * CALLS })
  const clock = { nowMs: Date.parse('2026-11-01T00:00:00Z') }
  const gate = createGate({
    tools,
    policy: { name: 'base' },
    audit,
    clock: { wallMs: () => clock.nowMs, monotonicMs: () => clock.nowMs },
  })
  const view = await gate.view({ user: 'viewer', roles: ['viewer'] })
  for (let i = 0; i < CALLS / 2; i++) {
    clock.nowMs += 5000
    await view.call({ tool: i % 3 ? 'files:read' : 'files:write', input: {} })
  }
  const catalog = formatSnapshot(takeSnapshot(gate.catalog))
  await gate.close()
  return { lines: audit.records.map((record) => `${JSON.stringify(record)}\n`), catalog }
}
