import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadConfig, type PolicyBody, type WhyBody, type WhyInputBody } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const TEXT = `servers: {}
policy:
  - name: baseline
    allow: ["slow:*"]
    deny:
      - { match: "slow:long", unless: "'admin' in caller.roles" }
      - { match: "slow:wait", mode: shadow }
      - { match: "slow:echo", input: "'untrusted' in run.labels && input.text == 'out'" }
limits: []
`

describe('the policy of a running gateway', () => {
  const { policy, places, policySource } = loadConfig('toolgate.yaml', { text: TEXT, env: {} })
  let gateway: TestGateway
  before(async () => {
    gateway = await startTestGateway({
      servers: [nodeServer('slow', [SLOW])],
      groups: [],
      apps: [],
      callers: [
        ...CALLERS,
        callerConfig('reader-key', { user: 'reader' }, 'console'),
        callerConfig('acme-key', { user: 'ann', tenant: 'acme', roles: ['approver'] }, 'console'),
        callerConfig('acme-agent', { user: 'bob', tenant: 'acme' }),
      ],
      policy,
      ...(places && { places }),
      policySource,
    })
  })
  after(() => gateway.close())

  const call = (tool: string) =>
    gateway.api('/api/call', { key: KEYS.viewer, method: 'POST', body: { tool, input: {} } })
  const policyNow = async () => (await gateway.api('/api/policy')).body as PolicyBody

  it('has the hits of each clause, with its line', async () => {
    for (const tool of ['slow:echo', 'slow:long', 'slow:long', 'slow:wait']) await call(tool)
    const { text, file, line, clauses } = await policyNow()
    assert.deepEqual([file, line], ['toolgate.yaml', 2])
    assert.equal(text, TEXT.split('\n').slice(1, 8).join('\n'))
    assert.deepEqual(
      clauses.map(({ clause, place, hits, matchesTools, shadow }) => [clause, place?.line, hits, matchesTools, shadow]),
      [
        ['baseline#deny[0]', 6, 2, 1, undefined],
        ['baseline#deny[1]', 7, 1, 1, true],
        ['baseline#deny[2]', 8, 0, 1, undefined],
        ['baseline#allow[0]', 4, 4, 4, undefined],
      ],
    )
  })

  it('is not shown as text to people who decide nothing', async () => {
    const { body } = await gateway.api('/api/policy', { key: 'reader-key' })
    assert.equal((body as PolicyBody).text, undefined)
    assert.equal((body as PolicyBody).clauses.length, 4)
  })

  it('shows people of a tenant no counts of the calls of others', async () => {
    const { revision, ...rest } = (await gateway.api('/api/policy', { key: 'acme-key' })).body as PolicyBody
    assert.deepEqual([revision > 0, rest], [true, { clauses: [] }])
    const why = (await gateway.api('/api/why?tool=slow:long&as=bob', { key: 'acme-key' })).body as WhyBody
    assert.equal(why.reasons[0]?.place?.line, 6)
    assert.equal(why.reasons[0].hits, undefined)
  })

  it('explains a refusal with the place of its clause and its hits', async () => {
    const why = (await gateway.api('/api/why?tool=slow:long&as=viewer')).body as WhyBody
    const [reason] = why.reasons
    assert.deepEqual(reason?.place, { file: 'toolgate.yaml', line: 6, column: 9 })
    assert.equal(reason.hits, 2)
    assert.ok(why.answers.some(({ layer, outcome }) => layer === 'scopes' && outcome === 'allow'))
    const shadowed = (await gateway.api('/api/why?tool=slow:wait&as=viewer')).body as WhyBody
    assert.equal(shadowed.outcome, 'allow')
    assert.equal(shadowed.shadow?.reasons[0]?.place?.line, 7)
  })

  describe('toolgate why with --input and --history', () => {
    const why = (...args: string[]) => runCommand(gateway.url, 'why', 'slow:echo', '--as', 'viewer', ...args)

    it('says which clause decides about a call, with its line and hits, and what would have to change', async () => {
      const counted = await policyNow()
      const no = await why('--input', '{"text":"out"}', '--history', 'labels: [untrusted]')
      assert.equal(no.code, 1)
      const lines = no.out.split('\n')
      assert.equal(lines[0], 'deny  a call of slow:echo by viewer would be refused')
      assert.match(lines[1] ?? '', /^ {2}deny {2}input: .*\(input_denied\)$/)
      assert.match(lines[2] ?? '', /toolgate\.yaml:8:9 {2}baseline#deny\[2\] {2}no call has reached it since 20/)
      assert.match(no.out, /\n {2}said yes: .*policy.*scopes/)
      assert.match(no.out, /\n {2}would allow it {2}`baseline#deny\[2\]` removed, or narrowed \(toolgate\.yaml:8:9\)\n/)
      assert.match(no.out, /\n {2}the agent would read: /)
      const yes = await why('--input', '{"text":"in"}', '--history', '{"labels":["untrusted"]}')
      assert.deepEqual([yes.code, yes.out.split('\n')[0]], [0, 'allow  a call of slow:echo by viewer would run'])
      const json = await why('--input', '{"text":"out"}', '--history', 'labels: [untrusted]', '--json')
      assert.equal((JSON.parse(json.out) as WhyInputBody).reasons[0]?.place?.line, 8)
      assert.deepEqual(await policyNow(), counted, 'nothing is counted')
      const { body } = await gateway.api('/api/audit?event=tool_call&tool=slow:echo')
      assert.equal((body as { records: unknown[] }).records.length, 1, 'nothing is recorded')
    })

    it('reads files, and names what is wrong with line and column', async () => {
      const folder = tempFolder()
      const file = (name: string, text: string) => {
        const path = join(folder.path, name)
        writeFileSync(path, text)
        return path
      }
      const history = file('history.yaml', 'said: hello\ncalls:\n  - { tool: slow:wait }\n')
      assert.equal((await why('--input', `@${file('in.json', '{"text":"out"}')}`, '--history', history)).code, 1)
      const wrong = file(
        'wrong.yaml',
        'labels: [untrusted]\ncalls:\n  - tool: slow:ecko\n  - { tool: slow:wait, inptu: 1 }\n',
      )
      const bad = await why('--history', wrong)
      assert.equal(bad.code, 2)
      const lines = bad.err.split('\n')
      assert.match(
        lines[0] ?? '',
        /wrong\.yaml:3:11: calls\[0\]\.tool: unknown tool "slow:ecko"; did you mean "slow:echo"\?/,
      )
      assert.match(lines[1] ?? '', /wrong\.yaml:4:24: calls\[1\]\.inptu: unknown key; did you mean "input"\?/)
      assert.match((await why('--history', join(folder.path, 'none'))).err, /none cannot be read \(ENOENT\)/)
      assert.match((await why('--input', '{"a":}')).err, /--input:1:6: it is not JSON \(value expected\)/)
      assert.match((await why('--input', '[]')).err, /--input is not a JSON object/)
      const cut = file('cut.json', '{\n  "text": "out"\n')
      assert.match((await why('--input', `@${cut}`)).err, /cut\.json:3:1: it is not JSON \(close brace expected\)/)
      assert.match((await why('--input', '-', '--history', '-')).err, /Only one of --input and --history/)
      folder.remove()
    })
  })

  it('has the hits in the metrics', async () => {
    const { text } = await send(`${gateway.url}/metrics`, {
      method: 'GET',
      headers: { authorization: `Bearer ${KEYS.console}` },
    })
    assert.match(
      text,
      /toolgate_clause_hits_total\{clause="baseline#deny\[0\]",path="policy\[0\]\.deny\[0\]",kind="deny",shadow="false"\} 2/,
    )
  })
})
