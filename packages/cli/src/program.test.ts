import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, beforeEach, describe, it } from 'node:test'
import { createGate, ToolgateError } from '@toolgate/core'
import { createNoteSigner, newSigningKey } from '@toolgate/core/audit'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { checkpointsPath } from '@toolgate/stores/verify'
import type { StartGateway } from './commands/serve.ts'
import { COMMANDS } from './command-table/index.ts'
import { EXITS } from './exit.ts'
import { runProgram } from './program.ts'
import { createStopSignals } from './stop-signals.ts'
import { auditRecord, CALLERS, type FakeGateway, fakeGateway, TOOLS, whyBody } from './testing/fake-gateway.ts'
import { fakeIo } from './testing/fake-io.ts'

/** The least that a configuration must say. */
const BASE = 'servers: {}\npolicy: [{ allow: ["*"] }]'

describe('toolgate', () => {
  let gateway: FakeGateway
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-cli-'))
  before(async () => {
    gateway = await fakeGateway()
  })
  after(() => {
    gateway.close()
    rmSync(folder, { recursive: true })
  })
  beforeEach(() => {
    gateway.records.length = 0
    gateway.requests.length = 0
  })

  interface Run {
    readonly code: number
    readonly out: string
    readonly err: string
  }
  const process = new EventEmitter()
  const run = async (args: string[], options: RunOptions = {}): Promise<Run> => {
    const io = fakeIo({ TOOLGATE_URL: gateway.url, ...options.env }, options.terminal)
    const signals = createStopSignals({ source: process, exit: () => {}, nowMs: () => 0 })
    const running = runProgram(args, { io, version: '1.2.3', signals, start: options.start ?? refuseToStart })
    await options.during?.(io.out)
    const code = await running
    return { code, out: io.out(), err: io.err() }
  }

  const write = (name: string, text: string): string => {
    const file = path.join(folder, name)
    writeFileSync(file, text)
    return file
  }

  describe('tools', () => {
    it('lists the visible tools, what is down, and how many are hidden', async () => {
      const { code, out } = await run(['tools', '--as', 'viewer'])
      assert.equal(code, 0)
      assert.equal(
        out,
        `viewer sees 1 of 2 tools

TOOL        ANSWER  TAGS  WHY
files:read  allow   read

server memory is down: exited with code 1
group lab is unavailable: nothing listens on 127.0.0.1:4444. Open it.
1 tool hidden; --all shows why.
`,
      )
    })

    it('shows hidden ones with the reason, and lets no text write on the terminal by itself', async () => {
      const { out } = await run(['tools', '--as', 'viewer', '--all'])
      assert.match(out, /files:write {2}deny {10}baseline \\u001b\[2Jdenies it/)
    })

    it('prints without a caller how many tools each caller sees', async () => {
      const { out } = await run(['tools'])
      assert.match(out, /^CALLER {2}KEY FOR {2}ROLES {3}TOOLS\nviewer {2}mcp {6}viewer {2}1\n/)
    })

    it('prints the bodies of the API for programs', async () => {
      assert.deepEqual(JSON.parse((await run(['tools', '--as', 'viewer', '--json'])).out), TOOLS)
      assert.deepEqual(JSON.parse((await run(['tools', '--json'])).out), CALLERS)
    })

    it('asks for any other caller as JSON', async () => {
      await run(['tools', '--caller', '{"roles":["viewer"],"user":"x"}'])
      assert.deepEqual(JSON.parse(gateway.requests[0]?.searchParams.get('caller') ?? ''), {
        roles: ['viewer'],
        user: 'x',
      })
    })

    it('asks for a caller within an app', async () => {
      await run(['tools', '--as', 'viewer', '--app', 'research'])
      await run(['why', 'files:read', '--as', 'viewer', '--app', 'research'])
      assert.deepEqual(
        gateway.requests.map(({ pathname, searchParams }) => [pathname, searchParams.get('app')]),
        [
          ['/api/tools', 'research'],
          ['/api/why', 'research'],
        ],
      )
      const { code, err } = await run(['tools', '--app', 'research'])
      assert.equal(code, EXITS.usage.code)
      assert.match(err, /--app needs --as or --caller/)
    })

    it('uses colours on a terminal only, and not with NO_COLOR', async () => {
      const hasColour = ({ out }: Run): boolean => out.includes('\u001b[')
      assert.equal(hasColour(await run(['tools', '--as', 'viewer'], { terminal: true })), true)
      assert.equal(hasColour(await run(['tools', '--as', 'viewer'], { terminal: true, env: { NO_COLOR: '1' } })), false)
    })
  })

  describe('people list', () => {
    it('prints who was seen, by what they are called, and how many more there are', async () => {
      const { code, out, err } = await run(['people', 'list', '--tenant', 'acme', '--limit', '2'])
      assert.equal(code, 0)
      const [heads, ann, boss] = out.split('\n').map((line) => line.trim().split(/ {2,}/))
      assert.deepEqual(heads, ['AS', 'NAME', 'TENANT', 'ROLES', 'FROM', 'CAME BY', 'CLIENTS', 'TOOLS', 'LAST SEEN'])
      const own = ['clerk', 'https://id.example', 'token', 'app', '3', '2026-11-28T14:03:00.000Z']
      assert.deepEqual(ann, ['corp/ann of acme', 'Ann \\u001b[2JAdams', 'acme', ...own])
      assert.deepEqual(boss, ['boss', 'approver', 'the file'])
      assert.match(err, /^2 of 120: /)
      const [asked] = gateway.requests
      assert.deepEqual([...(asked?.searchParams ?? [])].toSorted(), [
        ['limit', '2'],
        ['tenant', 'acme'],
      ])
    })
  })

  describe('why', () => {
    it('shows the dependencies of an allow: the rule, its line, an input, and the end of a used-up limit', async () => {
      const { code, out } = await run(['why', 'files:move', '--as', 'viewer'])
      assert.equal(code, 0)
      assert.match(out, /^allow, depends on the input, not now {2}viewer sees files:move\n/)
      assert.match(out, /by the input, it may still get: {2}deny {2}input: policy "baseline" denies files:move, where/)
      assert.match(out, /toolgate\.yaml:7:9 {2}no call has reached it since/)
      assert.match(out, /as with the input \{"to":"\/etc"\}\n/)
      assert.match(out, /now, it would get: {2}wait {2}limits: the limit \*:2\/60 is used up .*\n +until \d{4}-/)
      assert.doesNotMatch(out, /No layer objects/)
    })

    it('answers yes with exit code 0, and no with 1', async () => {
      const yes = await run(['why', 'files:read', '--as', 'viewer'])
      assert.deepEqual([yes.code, yes.out], [0, 'allow  viewer sees files:read\n  No layer objects.\n'])
      const no = await run(['why', 'files:write', '--as', 'viewer'])
      assert.equal(no.code, 1)
      assert.match(
        no.out,
        /^deny {2}viewer does not see files:write\n {2}deny {2}policy: baseline .* \(policy_denied\)\n$/,
      )
    })

    it('says which token the roles of a person are from', async () => {
      const { out } = await run(['why', 'files:signed', '--as', 'corp/ann'])
      assert.match(out, /\n {2}roles of the token of 2026-11-28T14:03:00\.000Z from https:\/\/id\.example\n/)
      assert.doesNotMatch((await run(['why', 'files:read', '--as', 'viewer'])).out, /roles of/)
    })

    it('prints what would have to change, and where', async () => {
      const { out } = await run(['why', 'files:delete', '--as', 'viewer'])
      assert.deepEqual(out.split('\n').slice(-3), [
        '  would allow it  `operator` in `roles`, and the group `web` available',
        '  would allow it  `files#deny[1]` removed, or narrowed (toolgate.yaml:12:7)',
        '',
      ])
    })

    it('names the parts of the input that are not checked', async () => {
      const { out } = await run(['why', 'web:search', '--as', 'viewer'])
      assert.match(out, /\n {2}warn {2}inputSchema\/properties\/q\/pattern is not checked\n$/)
    })

    it('shows what the server of the tool may ask clients for', async () => {
      const { out } = await run(['why', 'web:search', '--as', 'viewer'])
      assert.match(out, /\n {2}its server may ask clients for: sample, open https:\/\/login\.example\.com\n/)
      const other = await run(['why', 'files:read', '--as', 'viewer'])
      assert.doesNotMatch(other.out, /may ask/)
    })

    it('answers programs with the same exit codes', async () => {
      const { code, out } = await run(['why', 'files:write', '--as', 'viewer', '--json'])
      assert.deepEqual([code, JSON.parse(out)], [1, whyBody('files:write')])
    })
  })

  describe('an invalid command line ends with 2', () => {
    const cases: [args: string[], message: RegExp][] = [
      [['toools'], /unknown command 'toools'\nDid you mean tools\?/],
      [['tools', '--foo'], /unknown option '--foo'/],
      [['why', '--as', 'viewer'], /missing required argument 'tool'/],
      [['why', 'files:read'], /why needs --as <user> or --caller <json>/],
      [['why', 'files:read', '--as', 'a', '--caller', '{}'], /--as or --caller, not both/],
      [['tools', '--caller', '{'], /--caller cannot be used: it is not JSON/],
      [['tools', '--caller', '{"usr":"x"}'], /caller\.usr: unknown field; did you mean "user"\?/],
      [['tools', '--url', 'nowhere'], /"nowhere" is not a URL/],
      [['tools', '--as', 'nobody'], /No caller is named "nobody"/],
      [['audit', 'query', '--limit', '0'], /It is a whole number from 1 to 1000/],
      [['audit', 'query', '--since', 'tomorrow'], /It is a time such as 2026-/],
      [['audit', 'query', '--outcome', 'ok'], /Allowed choices are done, failed/],
      [['audit', 'query', '--event', 'tool_cal'], /Allowed choices are tool_call,/],
      [['audit', 'query', '--file', '/nowhere/audit.db'], /The audit file cannot be read: ENOENT/],
      [
        ['serve', '--config', '/nowhere/toolgate.yaml'],
        /\/nowhere\/toolgate\.yaml:1:1: cannot be read: there is no such file/,
      ],
      [['try', '--port', '80o'], /--port is "80o", which is not a port/],
      [['try', '--port', '65536'], /--port is "65536"/],
    ]
    for (const [args, message] of cases)
      it(args.join(' '), async () => {
        const { code, out, err } = await run(args)
        assert.equal(code, 2)
        assert.equal(out, '')
        assert.match(err, message)
      })

    it('PORT=abc try', async () => {
      const { code, err } = await run(['try'], { env: { PORT: 'abc' } })
      assert.equal(code, 2)
      assert.match(err, /PORT is "abc", which is not a port/)
    })
  })

  describe('an error', () => {
    const bad = () => write('errors.yaml', 'servers: {}\npolcy: []\n')
    const cases: readonly (readonly [
      what: string,
      args: () => string[],
      code: string,
      exit: number,
      message: RegExp,
    ])[] = [
      ['of the command line', () => ['toools'], 'usage', 2, /^unknown command 'toools'$/],
      ['of an option', () => ['tools', '--foo'], 'usage', 2, /^unknown option '--foo'$/],
      [
        'of a value',
        () => ['audit', 'query', '--limit', '0'],
        'usage',
        2,
        /^option '--limit <n>' argument '0' is invalid/,
      ],
      ['of a command', () => ['why', 'files:read'], 'usage', 2, /^why needs --as/],
      ['of the gateway', () => ['tools', '--as', 'nobody'], 'caller_unknown', 2, /^No caller is named "nobody"/],
      ['of the gateway itself', () => ['why', 'broken', '--as', 'viewer'], 'internal', 1, /^The gateway failed/],
      ['of the key', () => ['tools', '--key', 'wrong'], 'unauthenticated', 5, /^The key is not known/],
      ['of no gateway', () => ['tools', '--url', 'http://127.0.0.1:1'], 'unreachable', 3, /^No gateway answers/],
      ['of a configuration', () => ['serve', '--config', bad()], 'config_invalid', 2, /polcy/],
      ['of a file', () => ['audit', 'verify', '--file', bad()], 'audit_invalid', 2, /errors\.yaml is not an audit\.$/],
      ['of a file that is missing', () => ['audit', 'verify', '--file', '/nowhere'], 'audit_unavailable', 1, /ENOENT/],
    ]
    for (const [what, args, code, exit, message] of cases) {
      it(`${what} is JSON on stderr with --json`, async () => {
        const { code: ended, out, err } = await run([...args(), '--json'])
        assert.deepEqual([ended, out], [exit, ''])
        const { error } = JSON.parse(err)
        assert.deepEqual([error.code, error.exit], [code, exit])
        assert.match(error.message, message)
      })
      if (code !== 'config_invalid')
        it(`${what} begins with "error" for people`, async () => {
          const { code: ended, out, err } = await run(args())
          assert.deepEqual([ended, out], [exit, ''])
          assert.match(err, /^error {2}/)
          assert.match(
            err.slice('error  '.length).trimEnd().split('\n').slice(0, 2).join('\n'),
            new RegExp(message.source.replace(/\$$/, '')),
          )
        })
    }

    it('says what to do in a separate field', async () => {
      const { error } = JSON.parse((await run(['tools', '--url', 'http://127.0.0.1:1', '--json'])).err)
      assert.match(error.hint, /^Start one with "toolgate serve/)
      const { error: invalid } = JSON.parse((await run(['serve', '--config', bad(), '--json'])).err)
      assert.equal(invalid.problems[0].line, 2)
    })
  })

  describe('which gateway, and with which key', () => {
    it('reports that none answers, and how to start one, with 3', async () => {
      const gone = await fakeGateway()
      gone.close()
      const { code, err } = await run(['tools', '--url', gone.url])
      assert.equal(code, 3)
      assert.match(
        err,
        /No gateway answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)\.\nStart one with "toolgate serve/,
      )
    })

    it('reports that something else answers there, with 3', async () => {
      const other = createServer((_request, response) => response.end('<html>'))
      await once(other.listen(0, '127.0.0.1'), 'listening')
      const { code, err } = await run(['tools', '--url', `http://127.0.0.1:${(other.address() as AddressInfo).port}`])
      other.close()
      assert.equal(code, 3)
      assert.match(err, /Something that is not a Toolgate gateway answers/)
    })

    it('reports that the key is refused, with 5', async () => {
      for (const key of ['demo-viewer', 'wrong'])
        assert.equal((await run(['tools', '--key', key])).code, EXITS.key.code)
      assert.equal((await run(['tools'], { env: { TOOLGATE_KEY: 'wrong' } })).code, EXITS.key.code)
    })

    it('reports that the gateway failed, with 1', async () => {
      assert.equal((await run(['why', 'broken', '--as', 'viewer'])).code, 1)
    })

    it('takes the address and the console key from a configuration', async () => {
      const { port } = new URL(gateway.url)
      const text = `${BASE}\nlisten: { port: ${port} }\ncallers: [{ key: a-secret-console-key, user: owner, for: console }]`
      const file = write('target.yaml', text)
      const { code, err } = await run(['tools', '--config', file], { env: { TOOLGATE_URL: '' } })
      assert.equal(code, EXITS.key.code)
      assert.equal(gateway.requests.length, 1)
      assert.ok(err.includes(`The key is that in ${file}:`), err)
    })
  })

  describe('check', () => {
    it('prints every problem as file:line:column', async () => {
      const file = write('bad.yaml', 'servers: {}\npolcy: []\nlimits: [x]\n')
      const { code, out, err } = await run(['check', file])
      assert.deepEqual([code, out], [2, ''])
      assert.match(
        err,
        /bad\.yaml:2:1: polcy: unknown key, .* did you mean "policy"\?\n.*bad\.yaml:3:10: limits\[0\]: .*\n2 problems/,
      )
    })

    it('prints ok, with a summary', async () => {
      const { code, out } = await run(['check', write('good.yaml', `${BASE}\naudit: { store: memory }`)])
      assert.equal(code, 0)
      assert.match(out, /^ok {2}.*good\.yaml: 0 servers, 0 callers, 0 groups, 1 policy, 0 limits, audit in memory\n$/)
    })

    it('names what a server waits for, says that the gateway starts, and is content without secrets', async () => {
      const text = `${BASE}\naudit: { store: memory }`.replace(
        /servers:.*/,
        'servers: { a: { command: a, env: { A_TOKEN: "${TOOLGATE_NO_TOKEN}" } }, b: { command: b } }',
      )
      const file = write('waits.yaml', text)
      const { code, out, err } = await run(['check', file])
      assert.equal(code, EXITS.no.code)
      assert.match(out, /^starts {2}.*waits\.yaml: 2 servers, 1 waiting, /)
      assert.match(
        err,
        /^error {2}.*waits\.yaml:\d+:\d+: servers\.a\.env\.A_TOKEN: .* TOOLGATE_NO_TOKEN is not set.*\nThe gateway/,
      )
      const json = JSON.parse((await run(['check', file, '--json'])).out)
      assert.deepEqual([json.ok, json.problems, json.absent.length], [false, [], 1])
      const inCi = await run(['check', file, '--no-secrets'])
      assert.equal(inCi.code, 0)
      assert.match(inCi.err, /^warn {2}.*TOOLGATE_NO_TOKEN is not set/)
    })

    it('shows what servers may ask clients for', async () => {
      const servers = `servers:
  mail: { url: "http://127.0.0.1:1/mcp", may: [sample, elicit, { open: ["https://login.example.com"] }] }
  files: { url: "http://127.0.0.1:2/mcp" }
`
      const file = write('asking.yaml', servers + BASE.replace('servers: {}', ''))
      const { out } = await run(['check', file])
      assert.match(out, /\n {4}server mail may ask clients for: elicit, sample, open https:\/\/login\.example\.com\n$/)
      const { mayAsk } = JSON.parse((await run(['check', file, '--json'])).out)
      assert.deepEqual(mayAsk, [{ server: 'mail', may: ['elicit', 'sample', 'open https://login.example.com'] }])
    })

    it('says what the first start of a server downloads', async () => {
      const text = `${BASE}\naudit: { store: memory }`.replace(
        /servers:.*/,
        'servers: { files: { command: uvx, args: [files==1.0.0] } }',
      )
      const file = write('downloads.yaml', text)
      const said = 'the first start of "files" downloads files==1.0.0, unless a cache has it'
      assert.ok((await run(['check', file])).out.includes(said))
      const { downloads } = JSON.parse((await run(['check', file, '--json'])).out)
      assert.deepEqual(downloads, [{ server: 'files', packages: ['files==1.0.0'] }])
    })

    it('warns when the audit, its checkpoints and its key are in one folder', async () => {
      const text = `${BASE}\naudit: { path: ./one/audit.db, checkpoints: { path: ./one/audit.checkpoints } }`
      const file = write('together.yaml', text)
      const { code, out, err } = await run(['check', file])
      assert.deepEqual([code, out.startsWith('ok')], [0, true])
      assert.match(
        err,
        /^warn {2}The checkpoints .*one\/audit\.checkpoints are in the folder of the audit.*\nwarn {2}The signing key/,
      )
      const { ok, warnings } = JSON.parse((await run(['check', file, '--json'])).out)
      assert.deepEqual(
        [ok, warnings.map(({ code: kind }: { code: string }) => kind)],
        [true, ['checkpoints_together', 'key_together']],
      )
      assert.equal((await run(['check', write('apart.yaml', BASE)])).err, '')
    })

    it('starts the servers where that is asked for, and names what their schemas leave unchecked', async () => {
      const server = path.join(import.meta.dirname, '../../gateway/fixtures/odd-schemas-stdio.js')
      const text = `servers: { odd: { command: "${globalThis.process.execPath}", args: ["${server}"] } }\npolicy: [{ allow: ["*"] }]`
      const file = write('servers.yaml', text)
      const start: StartGateway = async (config, options) =>
        (await import('@toolgate/gateway')).startGateway(config, options)
      assert.equal((await run(['check', file], { start })).err, '')
      const { code, out, err } = await run(['check', file, '--servers'], { start })
      assert.deepEqual([code, out.startsWith('ok')], [0, true])
      assert.match(
        err,
        /^warn {2}tools\.odd:backreference\.inputSchema\/properties\/text\/pattern: is not checked: .*a backreference$/m,
      )
      assert.match(err, /^warn {2}server odd: tool remote is not offered: .*outside this schema/m)
      const { warnings } = JSON.parse((await run(['check', file, '--servers', '--json'], { start })).out) as {
        warnings: { code: string; path?: string }[]
      }
      assert.deepEqual(
        warnings.map(({ code: kind, path: at }) => [kind, at]).filter(([kind]) => kind === 'schema_skipped'),
        [['schema_skipped', 'tools.odd:backreference.inputSchema/properties/text/pattern']],
      )
    })

    it('says with line and column what cannot be compared, once the servers have listed their tools', async () => {
      const { SERVERS } = await import('../../gateway/fixtures/servers.ts')
      const tools =
        '{ write_file: { compare: { text: input.content, with: read_txt_file, input: { path: input.path } } } }'
      const server = `{ command: "${globalThis.process.execPath}", args: ["${SERVERS.filesystem}", "${import.meta.dirname}"], per: shared,\n    tools: ${tools} }`
      const file = write('compare.yaml', `servers:\n  files: ${server}\npolicy: [{ allow: ["*"] }]`)
      const start: StartGateway = async (config, options) =>
        (await import('@toolgate/gateway')).startGateway(config, options)
      const { err } = await run(['check', file, '--servers'], { start })
      assert.match(
        err,
        /compare\.yaml:3:\d+: servers\.files\.tools\.write_file\.compare: "read_txt_file" names no tool/,
      )
      const { warnings } = JSON.parse((await run(['check', file, '--servers', '--json'], { start })).out) as {
        warnings: { code: string; line?: number }[]
      }
      assert.deepEqual(warnings.find(({ code }) => code === 'compare_unusable')?.line, 3)
    })

    it('refuses a configuration without a policy, as serve does', async () => {
      const file = write(
        'open.yaml',
        'servers: {}\nlisten: { host: 0.0.0.0 }\ncallers: [{ key: a-long-key, user: vera }]\n',
      )
      for (const args of [
        ['check', file],
        ['serve', '--config', file],
      ]) {
        const { code, err } = await run(args)
        assert.equal(code, 2)
        assert.match(
          err,
          /open\.yaml:1:1: policy: is missing, .* write policy: \[\{ allow: \["\*"\] \}\] to mean that\n1 problem/,
        )
      }
    })

    it('warns of names that nothing can have, and is ok', async () => {
      const file = write('warned.yaml', 'servers: {}\naudit: { store: memory }\npolicy:\n  - deny: [write_file]\n')
      const { code, out, err } = await run(['check', file])
      assert.equal(code, 0)
      assert.match(err, /^warn {2}.*warned\.yaml:4:12: policy\[0\]\.deny\[0\]: "write_file" names no tool: .*\n$/)
      assert.match(out, /^ok .*, 1 warning\n$/)
      const json = JSON.parse((await run(['check', file, '--json'])).out) as {
        ok: boolean
        warnings: { line: number }[]
      }
      assert.deepEqual([json.ok, json.warnings.map(({ line }) => line)], [true, [4]])
    })

    it('warns if no console key can decide the requests', async () => {
      const callers =
        '[{ key: a-key-of-vera, user: vera, tenant: acme }, { key: a-key-of-owner, user: owner, for: console, roles: [approver] }]'
      const text = `servers: {}\naudit: { store: memory }\npolicy: [{ ask: ["*"] }]\ncallers: ${callers}\n`
      const { code, err } = await run(['check', write('approvers.yaml', text)])
      assert.equal(code, 0)
      assert.match(err, /approvers\.yaml:4:11: callers\[0\]: no console key can decide the requests of "vera"/)
      assert.match(err, /callers\[1\]: "owner" has the role "approver" without a tenant/)
      const { warnings } = JSON.parse((await run(['check', write('approvers.yaml', text), '--json'])).out)
      assert.deepEqual(
        warnings.map(({ code: kind }: { code: string }) => kind),
        ['approver_missing', 'approver_idle'],
      )
    })

    it('prints the problems for programs', async () => {
      const file = write('bad.yaml', 'servers: {}\npolcy: []\n')
      const { code, out } = await run(['check', file, '--json'])
      const body = JSON.parse(out) as { ok: boolean; problems: { line: number; column: number; path: string }[] }
      assert.deepEqual([code, body.ok, body.problems[0]?.line, body.problems[0]?.path], [2, false, 2, 'polcy'])
    })
  })

  describe('audit', () => {
    it('prints the records that match, newest first', async () => {
      gateway.records.push(auditRecord(1), auditRecord(2))
      const { code, out } = await run([
        'audit',
        'query',
        '--tool',
        'files:read',
        '--user',
        'viewer',
        '--limit',
        '5',
        '--after',
        '0',
      ])
      assert.equal(code, 0)
      assert.match(
        out,
        /^SEQ {2}DAY {9}TIME \(UTC.*\n2 {4}2026-11-2\d {2}.*tool_blocked {2}viewer {2}files:read {2}policy_denied\n1 {16}.*tool_result .* 12 ms\n$/,
      )
      assert.equal(gateway.requests[0]?.search, '?tool=files%3Aread&user=viewer&limit=5&after=0')
      assert.deepEqual(JSON.parse((await run(['audit', 'query', '--json'])).out), {
        records: [auditRecord(2), auditRecord(1)],
      })
    })

    it('prints that there are none', async () => {
      assert.equal((await run(['audit', 'query'])).out, 'No records.\n')
    })

    it('tails: the newest, oldest first, then every new one until it is stopped', async () => {
      for (let seq = 1; seq <= 5; seq++) gateway.records.push(auditRecord(seq))
      const { code, out } = await run(['audit', 'tail', '-n', '2', '--json'], {
        async during(output) {
          await until(() => output().split('\n').length > 2)
          // More than one page.
          for (let seq = 6; seq <= 2006; seq++) gateway.records.push(auditRecord(seq))
          await until(() => output().includes('"call-2006"'))
          process.emit('SIGINT', 'SIGINT')
        },
      })
      assert.equal(code, 0)
      const seqs = out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { seq: number }).seq)
      assert.deepEqual(
        seqs,
        Array.from({ length: 2003 }, (_, i) => i + 4),
      )
      assert.equal(process.listenerCount('SIGINT'), 0)
    })

    for (const [kind, open] of [
      ['SQLite', openSqliteAudit],
      ['JSON lines', openJsonlAudit],
    ] as const)
      it(`reads a file of ${kind} beside the gateway that writes it`, async () => {
        const file = path.join(folder, kind)
        const audit = open({ path: file })
        const entry = {
          event: 'tool_result',
          tool: 'files:read',
          tool_call_id: 'c',
          policy_revision: 1,
          catalog_revision: 1,
        } as const
        await audit.write({ ...entry, user_id: 'viewer', wallMs: 0 })
        await audit.flush()
        const { code, out } = await run(['audit', 'query', '--file', file])
        assert.equal(code, 0)
        assert.match(out, /2 {4}19(?:70-01-01|69-12-31) {2}\d\d:\d\d:00 .*tool_result {3}viewer {2}files:read/)
        assert.match((await run(['audit', 'tail', '--file', file, '--no-follow'])).out, /files:read/)
        await audit.close()
      })
  })

  describe('audit query, by time, session and outcome', () => {
    it('passes them on', async () => {
      const args = [
        '--since',
        '2026-11-21',
        '--until',
        '2026-11-22T00:00:00Z',
        '--session',
        's1',
        '--outcome',
        'failed',
      ]
      assert.equal((await run(['audit', 'query', ...args])).code, 0)
      const { searchParams } = gateway.requests[0] as URL
      assert.deepEqual(Object.fromEntries(searchParams), {
        session: 's1',
        outcome: 'failed',
        since: String(Date.UTC(2026, 10, 21)),
        until: String(Date.UTC(2026, 10, 22)),
      })
    })

    it('takes how long ago', async () => {
      await run(['audit', 'query', '--since', '2h'])
      const since = Number(gateway.requests[0]?.searchParams.get('since'))
      assert.ok(Math.abs(Date.now() - 7_200_000 - since) < 60_000)
    })
  })

  describe('audit export', () => {
    it('prints the records of a gateway as JSON lines', async () => {
      for (let seq = 1; seq <= 2000; seq++) gateway.records.push(auditRecord(seq))
      const { code, out } = await run(['audit', 'export', '--from', '2026-11-21', '--tool', 'files:read'])
      assert.deepEqual([code, out], [0, gateway.records.map((record) => `${JSON.stringify(record)}\n`).join('')])
      assert.equal(gateway.requests[0]?.searchParams.get('since'), String(Date.UTC(2026, 10, 21)))
    })

    it('reports that the key is refused, with 5', async () => {
      assert.equal((await run(['audit', 'export', '--key', 'wrong'])).code, 5)
    })
  })

  for (const [kind, open] of [
    ['SQLite', openSqliteAudit],
    ['JSON lines', openJsonlAudit],
  ] as const)
    describe(`audit verify, prove and export, on a file of ${kind}`, () => {
      const file = path.join(folder, `verify-${kind}`)
      before(async () => {
        const audit = open({ path: file })
        for (let i = 1; i <= 5; i++) {
          const call = {
            tool: 'files:read',
            tool_call_id: `c${i}`,
            policy_revision: 1,
            catalog_revision: 1,
            wallMs: i * 1000,
          }
          await audit.write({ ...call, event: 'tool_call' })
          await audit.write({ ...call, event: 'tool_result', ...(i === 3 ? { error: 'boom' } : {}) })
        }
        await audit.close()
      })

      it('reports that nothing was changed, and the checkpoints, with 0', async () => {
        const { code, out } = await run(['audit', 'verify', '--file', file])
        assert.equal(code, 0)
        assert.match(out, /^ok {2}12 records, the last is 12\n1 checkpoint up to record 12, the last of 20/)
        const verdict = JSON.parse((await run(['audit', 'verify', '--file', file, '--json'])).out)
        assert.deepEqual([verdict.status, verdict.checkpoints.lastSeq], ['ok', 12])
      })

      it('fails if a record that was signed is no longer signed', async () => {
        const signed = async (seq: string) => (await run(['audit', 'verify', '--file', file, '--signed', seq])).code
        assert.deepEqual([await signed('12'), await signed('13')], [0, 8])
        const { err } = await run(['audit', 'verify', '--file', file, '--signed', '13'])
        assert.equal(err, 'Record 13 is not signed: checkpoints go up to 12.\n')
      })

      it('finds the file in the configuration', async () => {
        const store = kind === 'SQLite' ? 'sqlite' : 'jsonl'
        const text = `${BASE}\naudit: { store: ${store}, path: ${JSON.stringify(file)} }`
        assert.equal((await run(['audit', 'verify', '--config', write(`${store}.yaml`, text)])).code, 0)
        const memory = write('memory.yaml', `${BASE}\naudit: { store: memory }`)
        const { code, err } = await run(['audit', 'verify', '--config', memory])
        assert.deepEqual([code, /kept in memory/.test(err)], [2, true])
      })

      it('proves that a call is there, and checks the proof without the audit', async () => {
        const { code, out } = await run(['audit', 'prove', '--call', 'c3', '--file', file])
        assert.deepEqual([code, out.match(/^c2sp\.org\/tlog-proof@v1$/gm)?.length], [0, 2])
        const key = ['--public-key', `${checkpointsPath(file)}.pub`]
        const checked = await run(['audit', 'check-proof', write('proofs', out), ...key])
        assert.deepEqual([checked.code, checked.out.match(/^holds/gm)?.length], [0, 2])
        const edited = out.replaceAll(/^extra (.*)$/gm, (_, extra: string) => {
          const link = Buffer.from(extra, 'base64').toString()
          return `extra ${Buffer.from(link.replace('boom', 'bang')).toString('base64')}`
        })
        const refused = await run(['audit', 'check-proof', write('forged', edited), ...key])
        assert.deepEqual([refused.code, refused.out.match(/the record was edited/g)?.length], [1, 1])
        const none = await run(['audit', 'check-proof', write('none', 'something else\n'), ...key])
        assert.deepEqual([none.code, none.out], [1, 'does not hold: it is not a proof of a record\n'])
        const proofsIn = path.join(path.dirname(file), `proofs-${path.basename(file)}`)
        const one = await run(['audit', 'prove', '--record', '7', '--file', file, '--out', proofsIn])
        assert.deepEqual([one.code, /7-[\da-f]{16}\.tlog-proof\n$/.test(one.out)], [0, true])
        const unknown = await run(['audit', 'prove', '--call', 'c9', '--file', file])
        assert.deepEqual([unknown.code, unknown.out], [1, ''])
      })

      it('exports the matching records, oldest first', async () => {
        const { code, out } = await run([
          'audit',
          'export',
          '--file',
          file,
          '--since',
          '1970-01-01',
          '--outcome',
          'failed',
        ])
        assert.deepEqual([code, out.match(/"tool_call_id":"c3"/g)?.length, out.split('\n').length], [0, 1, 2])
      })
    })

  describe('audit policy', () => {
    for (const [kind, openAudit] of [
      ['SQLite', openSqliteAudit],
      ['JSON lines', openJsonlAudit],
    ] as const)
      it(`prints the policy that decided, from ${kind}`, async () => {
        const file = path.join(folder, `policy-${kind}`)
        const audit = openAudit({ path: file })
        const gate = createGate({ tools: { look: {} }, audit, policy: { name: 'house', deny: ['look'] } })
        await (await gate.view({})).call({ tool: 'look', input: {} })
        const [record] = await audit.query({ event: 'tool_blocked' })
        await audit.close()
        const hash = record?.policy_hash ?? ''
        for (const asked of [hash, hash.slice(0, 8)]) {
          const { code, out } = await run(['audit', 'policy', asked, '--file', file])
          assert.deepEqual([code, JSON.parse(out).policies[0].name], [0, 'house'])
        }
        const unknown = await run(['audit', 'policy', '0'.repeat(64), '--file', file])
        assert.deepEqual([unknown.code, unknown.out], [1, ''])
        assert.equal((await run(['audit', 'policy', 'abc', '--file', file])).code, 2)
      })
  })

  describe('audit verify', () => {
    const file = path.join(folder, 'broken.jsonl')
    const lines = async (): Promise<string[]> => {
      const audit = openJsonlAudit({ path: file })
      await audit.close()
      return readFileSync(file, 'utf8').split('\n')
    }
    const verifyWith = async (texts: readonly string[]): Promise<[number, string]> => {
      writeFileSync(file, texts.join('\n'))
      const { code, out } = await run(['audit', 'verify', '--file', file])
      return [code, out.split('\n').slice(0, 2).join('\n')]
    }

    it('names each problem and its place, with an exit code for each', async () => {
      const whole = await lines()
      const [first = '', second = ''] = whole
      assert.deepEqual(await verifyWith([first.replace('sole_', 'only_'), second, '']), [
        6,
        'tampered  2 records, the last is 2\n  line 1: Record 1 was edited: its content does not have its hash.',
      ])
      assert.deepEqual((await verifyWith([first, second, '{"agent']))[0], 7)
      const [code, out] = await verifyWith([first, ''])
      assert.equal(code, 8)
      assert.match(out, /^gap {2}1 record, the last is 1\n {2}checkpoint 1: Record 2 is missing at the end/)
      assert.equal((await verifyWith(whole))[0], 0)
    })

    it('trusts the key that it is given, not the one that lies beside', async () => {
      await lines()
      const other = write('other.pub', `${createNoteSigner('broken.jsonl', newSigningKey()).verifierKey}\n`)
      const { code, out } = await run(['audit', 'verify', '--file', file, '--public-key', other])
      assert.equal(code, 6)
      assert.match(out, /checkpoint 1: Checkpoint 1 is not signed by a trusted key\./)
    })

    it('is not ok when the checkpoints that were configured are gone, with 9', async () => {
      const audit = path.join(folder, 'configured.jsonl')
      const checkpoints = path.join(folder, 'second-place', 'configured.checkpoints')
      await openJsonlAudit({ path: audit, checkpoints: { path: checkpoints } }).close()
      const text = `${BASE}\naudit: { store: jsonl, path: ${JSON.stringify(audit)}, checkpoints: { path: ${JSON.stringify(checkpoints)} } }`
      const config = write('configured.yaml', text)
      assert.equal((await run(['audit', 'verify', '--config', config])).code, 0)
      rmSync(checkpoints)
      const configured = await run(['audit', 'verify', '--config', config])
      assert.equal(configured.code, 9)
      assert.match(
        configured.out,
        /^unsigned {2}2 records, the last is 2\n {2}checkpoints: The checkpoints .* are missing\./,
      )
      assert.equal((await run(['audit', 'verify', '--file', audit, '--checkpoints', checkpoints])).code, 9)
      const alone = await run(['audit', 'verify', '--file', audit, '--json'])
      assert.deepEqual([alone.code, JSON.parse(alone.out).status], [9, 'unsigned'])
    })

    it('reports a file that is not an audit, with 2', async () => {
      const others = [
        write('notes.txt', 'not an audit\nat all\n'),
        write('line.txt', 'one line without an end'),
        write('other.json', '{ "a": 1 }\n'),
      ]
      const other = path.join(folder, 'other.db')
      new DatabaseSync(other).exec('CREATE TABLE audit (seq INTEGER)')
      for (const foreign of [...others, other]) {
        const { code, out, err } = await run(['audit', 'verify', '--file', foreign])
        assert.deepEqual([code, out, err], [2, '', `error  The file ${foreign} is not an audit.\n`])
      }
      for (const foreign of others)
        for (const command of [
          ['audit', 'query'],
          ['audit', 'export'],
        ]) {
          const { code, out, err } = await run([...command, '--file', foreign])
          assert.deepEqual([code, out, err], [2, '', `error  The file ${foreign} is not an audit.\n`])
        }
    })

    it('still reports an overwritten audit as tampered, as its checkpoints sign another', async () => {
      const whole = await lines()
      assert.equal((await verifyWith(['something else', '']))[0], 6)
      await verifyWith(whole)
    })

    it('prints which records no checkpoint has signed yet', async () => {
      const open = path.join(folder, 'unsigned.jsonl')
      await openJsonlAudit({ path: open }).close()
      assert.doesNotMatch((await run(['audit', 'verify', '--file', open])).out, /Not signed yet/)
      await openJsonlAudit({ path: open, checkpoints: false }).close()
      const { code, out } = await run(['audit', 'verify', '--file', open])
      assert.equal(code, 0)
      assert.match(out, /Not signed yet: the records after 2\./)
    })

    it('reports missing checkpoints and unreadable files', async () => {
      const bare = path.join(folder, 'bare.jsonl')
      await openJsonlAudit({ path: bare, checkpoints: false }).close()
      assert.match((await run(['audit', 'verify', '--file', bare])).out, /No checkpoint signs it/)
      const missing = await run(['audit', 'verify', '--file', '/nowhere/audit.db'])
      assert.deepEqual([missing.code, /ENOENT/.test(missing.err)], [1, true])
      assert.equal((await run(['audit', 'verify', '--file', bare, '--public-key', '/nowhere/key.pem'])).code, 2)
    })
  })

  describe('serve and try', () => {
    const taken: StartGateway = async () => {
      throw new ToolgateError('port_taken', 'Port 8787 on 127.0.0.1 is taken by another program.')
    }

    it('say which port is taken and how to choose another, with 4', async () => {
      const tried = await run(['try', '--port', '9000'], { start: taken })
      assert.equal(tried.code, 4)
      assert.match(
        tried.err,
        /is taken by another program\.\nChoose another: npm start -- --port 9001, or PORT=9001 npm start/,
      )
      const served = await run(['serve', '--config', write('s.yaml', BASE)], { start: taken })
      assert.deepEqual([served.code, /--port 8788/.test(served.err)], [4, true])
    })

    it('take --port before PORT, and PORT before the configuration', async () => {
      const ports: number[] = []
      const start: StartGateway = async (config) => {
        ports.push(config.listen.port)
        return taken(config)
      }
      const file = write('p.yaml', `${BASE}\nlisten: { port: 7000 }`)
      await run(['serve', '--config', file, '--port', '7002'], { start, env: { PORT: '7001' } })
      await run(['serve', '--config', file], { start, env: { PORT: '7001' } })
      await run(['serve', '--config', file], { start })
      assert.deepEqual(ports, [7002, 7001, 7000])
    })
  })

  it('prints its version, its help on one screen, and the exit codes as a topic', async () => {
    assert.deepEqual(await run(['--version']), { code: 0, out: '1.2.3\n', err: '' })
    const { code, out } = await run(['--help'])
    assert.equal(code, 0)
    for (const { name } of COMMANDS.filter((row) => !row.name.includes(' ')))
      assert.match(out, new RegExp(`^(?:\\w+ +| {8})${name} `, 'm'))
    for (const line of out.split('\n')) assert.ok(line.length <= 80, line)
    assert.ok(out.split('\n').length <= 48, 'it fits on a screen')
    assert.deepEqual(await run(['help']), { code: 0, out, err: '' })
    const topic = await run(['help', 'exit-codes'])
    for (const { means } of Object.values(EXITS)) assert.ok(topic.out.replaceAll(/\s+/g, ' ').includes(means), means)
  })

  it('prints the help of a command with examples, whose words and options exist', async () => {
    for (const { name, run: runs } of COMMANDS) {
      if (!runs || name === 'help') continue
      const { out } = await run(['help', ...name.split(' ')])
      const examples = out.split('\nExamples:\n')[1]
      assert.ok(examples, `${name} has examples in help-examples.ts`)
      assert.equal((await run([...name.split(' '), '--help'])).out, out)
      for (const [option] of examples.replace(/ -- .*/g, '').matchAll(/--[a-z-]+/g))
        assert.ok(out.split('\nExamples')[0]?.includes(option), `${name} ${option}`)
      for (const line of examples.trim().split('\n'))
        assert.ok(`${line.trim()} `.startsWith(`toolgate ${name.replace(/ list$/, '')} `), line)
    }
  })

  it('names the nearest command and topic, or says where the commands are', async () => {
    const errorOf = async (...words: readonly string[]) => {
      const { code, err } = await run([...words])
      assert.equal(code, 2)
      return err
    }
    assert.match(await errorOf('hlat'), /Did you mean halt\?/)
    assert.match(await errorOf('audit', 'qury'), /Did you mean query\?/)
    assert.match(await errorOf('foo'), /"toolgate --help" lists the commands\./)
    assert.match(await errorOf('help', 'exit-code'), /no help about "exit-code"\.\nDid you mean exit-codes\?/)
    assert.match(await errorOf('help', 'audit', 'qury'), /Did you mean query\?/)
    assert.match(await errorOf('halt', 'vera'), /Say what the name is: --user <user>/)
  })

  it('has its exit codes in the guide', () => {
    const guide = readFileSync(path.join(import.meta.dirname, '../../../docs/guide/cli.md'), 'utf8')
    const rows = Object.values(EXITS).map(({ code, means }) => `| ${code} | ${means} |`)
    assert.ok(guide.includes(rows.join('\n')), 'docs/guide/cli.md has another table')
  })
})

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly terminal?: boolean
  readonly start?: StartGateway
  readonly during?: (output: () => string) => Promise<void>
}

const refuseToStart: StartGateway = async () => {
  throw new Error('nothing is to be started here')
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}
