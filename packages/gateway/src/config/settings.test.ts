import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import type { GatewayConfig } from './config.ts'
import { loadConfig } from './load-config.ts'

const FILE = `
servers:
  remote: { url: "https://mcp.example/mcp", headers: { authorization: "Bearer \${TOKEN}", x: "\${OTHER:-fallback}" } }
  files: { command: "\${HOME}/files", args: ["\${SHORT}", "\${configDir}"], env: { A: "\${SET:-b}" } }
callers:
  - { key: "\${TOKEN}-vera", user: vera }
  - { key: demo-viewer, user: viewer }
policy: [{ allow: ["*"] }]
redact: { keys: [internal_pin], patterns: ["INT-[0-9]+"] }
`
const ENV = { TOKEN: 'very-secret', HOME: '/home/vera', SHORT: 'abc', SET: 'set-for-a' }

function load(text: string): GatewayConfig {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-redact-'))
  try {
    writeFileSync(path.join(folder, 'toolgate.yaml'), text)
    return loadConfig(path.join(folder, 'toolgate.yaml'), { env: ENV })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('the secrets of a configuration', () => {
  it('are the values of variables and the keys of callers, without demo keys', () => {
    assert.deepEqual([...(load(FILE).secrets ?? [])].toSorted(), ['set-for-a', 'very-secret', 'very-secret-vera'])
  })
  it('are not printed with it', () => {
    const { secrets } = load(FILE)
    assert.equal(JSON.stringify({ secrets }), '{"secrets":"[3 secrets]"}')
    assert.equal(inspect(Object.fromEntries([['secrets', secrets]])), '{ secrets: [3 secrets] }')
  })
})

describe('redact', () => {
  it('is read as written, and is empty by default', () => {
    assert.deepEqual(load(FILE).redact, { keys: ['internal_pin'], patterns: ['INT-[0-9]+'] })
    assert.deepEqual(load('servers: {}\npolicy: [{ allow: ["*"] }]').redact, { keys: [], patterns: [] })
  })
})
