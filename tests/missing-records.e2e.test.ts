import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { formatSnapshot, type Suggestion, takeSnapshot, type WhatIf } from '@toolgate/change'
import { loadConfig, type SuggestBody, type WhatIfBody } from '@toolgate/gateway'
import { runCommand, runCommandIn } from './support/command.ts'
import { startTestGateway, tempFolder } from './support/gateway.ts'
import { MODERN } from './support/rpc.ts'

/** Questions about recorded calls, of an audit in JSON lines that somebody has damaged. */

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const fileFor = (audit: string) => `
servers:
  slow: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
callers:
  - { key: demo-viewer, user: viewer, roles: [viewer] }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
  - { key: demo-tenant, for: console, user: tom, tenant: acme, roles: [approver] }
policy: [{ name: base, allow: ["*"] }]
labels: { trusted: ["slow:*"] }
listen: { port: 0 }
audit: { store: jsonl, path: ${JSON.stringify(audit)} }
state: { store: memory }
`
const TESTS = `
catalog: catalog.json
tests:
  - shows: the viewer may echo
    caller: viewer
    expect: { call: { "slow:echo": allow } }
`
const CALLS = 10

describe('missing records of an audit', () => {
  const folder = tempFolder()
  const at = (name: string) => join(folder.path, name)
  const files = ['--config', at('toolgate.yaml'), '--catalog', at('catalog.json')]
  let lines: readonly string[] = []

  before(async () => {
    writeFileSync(at('toolgate.yaml'), fileFor(at('audit.jsonl')))
    const gateway = await startTestGateway(loadConfig(at('toolgate.yaml')))
    writeFileSync(at('catalog.json'), formatSnapshot(takeSnapshot(gateway.gate.catalog)))
    for (let i = 0; i < CALLS; i++) await gateway.call('viewer', MODERN, 'slow__echo', { text: `${i}` })
    await gateway.close()
    lines = readFileSync(at('audit.jsonl'), 'utf8').trimEnd().split('\n')
  })
  after(() => folder.remove())

  /** Writes the audit with other lines. Returns its path. */
  const audit = (change: (line: string, at: number) => string | undefined, end = '\n') => {
    const path = at('damaged.jsonl')
    const kept = lines.map(change).filter((line) => line !== undefined)
    writeFileSync(path, `${kept.join('\n')}${end}`)
    return path
  }
  const broken = (line: string) => line.replace('"event"', '"event')
  const placesOf = (event: string) => lines.flatMap((line, i) => (line.includes(`"event":"${event}"`) ? [i] : []))
  const whatIf = (file: string, ...more: readonly string[]) =>
    runCommandIn({}, 'what-if', ...files, '--policy', at('toolgate.yaml'), '--file', file, ...more)
  const suggest = (file: string, ...more: readonly string[]) =>
    runCommandIn({}, 'suggest', ...files, '--file', file, ...more)

  it('are counted by a what-if, which then does not end well', async () => {
    const [first, second, third] = placesOf('tool_call') as [number, number, number]
    for (const [change, missing, calls] of [
      [(line: string, i: number) => ([first, second, third].includes(i) ? broken(line) : line), 3, CALLS - 3],
      [(line: string, i: number) => (i === second || i === second + 1 ? undefined : line), 2, CALLS - 1],
      [(line: string, i: number) => (i === lines.length - 1 ? broken(line) : line), 1, CALLS],
    ] as const) {
      const file = audit(change)
      const { code, out } = await whatIf(file, '--json')
      const found = JSON.parse(out) as WhatIf
      assert.deepEqual([code, found.missing, found.calls], [8, missing, calls])
      const text = await whatIf(file)
      assert.equal(text.code, 8)
      const many = missing === 1 ? '1 record of the audit is' : `${missing} records of the audit are`
      assert.match(
        text.out,
        new RegExp(`^  ${many} missing or cannot be read, so .* do not count; run: toolgate audit verify$`, 'm'),
      )
    }
  })

  it('are none where the audit is whole, or a crash has cut its last line', async () => {
    for (const end of ['\n', `\n${lines.at(-1)?.slice(0, 40)}`]) {
      const file = audit((line) => line, end)
      const { code, out } = await whatIf(file, '--json')
      assert.deepEqual([code, (JSON.parse(out) as WhatIf).missing], [0, 0])
      const text = await whatIf(file)
      assert.deepEqual([text.code, text.err], [0, ''])
      assert.doesNotMatch(text.out, /missing/)
      assert.equal((await suggest(file)).code, 0)
    }
  })

  it('are counted by a suggestion, which learns nothing from runs that they may have been of', async () => {
    const whole = JSON.parse(
      (
        await suggest(
          audit((line) => line),
          '--json',
        )
      ).out,
    ) as Suggestion
    assert.deepEqual([whole.missing, whole.learned], [0, CALLS])
    const [place] = placesOf('tool_result') as [number]
    const file = audit((line, i) => (i === place ? broken(line) : line))
    const { code, out } = await suggest(file, '--json')
    const found = JSON.parse(out) as Suggestion & { whatIf: WhatIf }
    assert.deepEqual([code, found.missing, found.whatIf.missing, found.learned], [8, 1, 1, 0])
    assert.deepEqual(
      found.leftOut.map(({ why }) => why),
      ['unknown_run', 'not_done'],
    )
    const text = await suggest(file)
    assert.equal(text.code, 8)
    assert.match(text.err, /warn {2}1 record of the audit is missing or cannot be read, so its calls do not count/)
  })

  it('are counted by a running gateway, and by the commands that ask it', async (t) => {
    const [first, second, third] = placesOf('tool_call') as [number, number, number]
    const last = placesOf('tool_call').at(-1)
    const ofTenant = (line: string, i: number) =>
      i === third || i === last ? line.replace('"tool"', '"tenant":"acme","tool"') : line
    const path = audit((line, i) => (i === first ? broken(line) : i === second ? undefined : ofTenant(line, i)))
    writeFileSync(at('toolgate.yaml'), fileFor(path))
    const gateway = await startTestGateway(loadConfig(at('toolgate.yaml')))
    t.after(() => gateway.close())
    const ask = async (what: string, body: object) => (await gateway.api(`/api/${what}`, { method: 'POST', body })).body
    const config = readFileSync(at('toolgate.yaml'), 'utf8')
    assert.equal(((await ask('what-if', { config })) as WhatIfBody).missing, 2)
    const suggested = (await ask('suggest', {})) as SuggestBody
    assert.deepEqual([suggested.missing, suggested.whatIf.missing], [2, 2])
    const asked = await runCommand(gateway.url, 'what-if', ...files, '--policy', at('toolgate.yaml'), '--json')
    assert.deepEqual([asked.code, (JSON.parse(asked.out) as WhatIf).missing], [8, 2])
    // Numbers of records that another tenant sees are not missing.
    const tenant = { TOOLGATE_URL: gateway.url, TOOLGATE_KEY: 'demo-tenant' }
    const own = await runCommandIn(tenant, 'what-if', ...files, '--policy', at('toolgate.yaml'), '--json')
    const seen = JSON.parse(own.out) as WhatIf
    assert.deepEqual([own.code, seen.records, seen.missing], [0, 2, 0])
    writeFileSync(at('toolgate.test.yaml'), TESTS)
    const test = ['test', at('toolgate.test.yaml'), '--config', at('toolgate.yaml'), '--audit']
    const tested = await runCommand(gateway.url, ...test, '--json')
    assert.equal(tested.code, 0, tested.out + tested.err)
    assert.equal(JSON.parse(tested.out).missing, 2)
    assert.match(
      (await runCommand(gateway.url, ...test)).err,
      /warn {2}2 records of the audit are missing or cannot be read/,
    )
  })
})
