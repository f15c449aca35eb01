import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { after, afterEach, before, describe, it } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { createGate, defineTool, memoryAudit } from '@toolgate/core'
import { type AuditRecord, hashOfText } from '@toolgate/core/audit'
import { readRecords, toSnapshot } from '@toolgate/change'
import { definePrompt, defineResource, defineTemplate } from '@toolgate/core/toolset'
import { loadConfig } from '../../config/load-config.ts'
import { answerQuestion } from './answer-question.ts'
import { type AskedOf, ChangeThread, type ChangeThreadOptions } from './change-thread.ts'
import { changeDeps, type ThreadQuestion, type Situation } from './questions.ts'

const CASES = path.resolve(import.meta.dirname, '../../config/cases')
const FILE = `
publicUrl: https://tools.example.com
servers:
  files:
    command: node
    args: ["\${ROOT}"]
    offers: [tools, resources, prompts]
    tools: { "read_*": { tags: [read] }, write_file: { tags: [write] } }
    resources: { "file:///secret/*": { tags: [secret] } }
  mail: { url: "https://mcp.example.com/mcp", headers: { authorization: "Bearer \${TOKEN}" }, era: modern }
oauth: { issuers: [{ issuer: "https://idp.example.com", name: idp, claims: { roles: groups }, users: { "4711": olga } }], stepUp: [mail.send] }
callers:
  - { key: "\${TOKEN}-olga", user: olga, roles: [operator], attributes: { level: 3 } }
  - { key: "\${TOKEN}-vera", user: vera, roles: [viewer], scopes: [mail.send] }
  - { keyHash: "sha256:${'ab'.repeat(32)}", user: tom, tenant: acme }
  - { key: key-of-the-owner, for: console, user: owner, roles: [operator] }
groups:
  writing: { tools: [write], visibility: conditional, availableWhen: [{ server: files }] }
aliases: { write: files:write_file }
labels: { trusted: ["files:*"], private: ["files:read_*"] }
history: { labelMs: 3600000 }
apps: { research: { import: [writing], tools: ["files:read_*"], policy: [{ deny: ["mail:*"] }] } }
limits: ["mail:send:5/60"]
calls: { concurrency: [{ match: "mail:*", max: 2 }] }
redact: { patterns: ["INT-[0-9]{4}"] }
approvals: { ttlMs: 60000 }
listen: { port: 0 }
audit: { store: memory, inputs: facts }
state: { store: memory }
policy:
  - name: base
    allow: ["*", "resource:*:*", "prompt:*:*"]
    deny:
      - { id: no-write, match: "group:writing", unless: "'operator' in caller.roles" }
      - { match: "mail:send", input: "input.to == 'mallory@example.com'" }
      - { match: "mail:*", when: "'private' in run.labels", mode: shadow }
    ask: [{ match: "mail:send", input: "like(input.text, 'INT-*')" }]
`
const POLICIES = [
  'policy: [{ allow: ["files:*"] }]',
  'policy: [{ name: base, allow: ["*", "resource:*:*"], deny: [{ match: "mail:send", input: "input.to in [\'bob@example.com\', \'mallory@example.com\']" }] }]',
  "policy: [{ deny: [{ match: 'mail:*', when: \"'private' in run.labels\" }, { match: 'resource:*:*', unless: \"'operator' in caller.roles\" }] }]",
  'policy: [{ deny: [{ match: "*", when: "caller.user == \'idp/\' + caller.roles[0]" }], requireTags: [read] }]',
  'policy: [{ allow: ["files:read_filee"] }]',
  'policy: [{ deny: [{ match: \'mail:send\', when: "like(caller.user, \'*a*a*a*b\')", message: "INT-4711" }] }]',
]
const TESTS = [
  'tests: [{ shows: Vera cannot write, caller: vera, expect: { call: { "files:write_file": deny, "mail:send": allow }, hides: ["mail:none"] } }]',
  'tests: [{ shows: Olga can, caller: olga, history: { labels: [private] }, expect: { call: { "files:write_file": allow }, visible: [] } }]',
  'tests: [{ shows: Nobody, caller: veraa, expect: { call: { "mail:send": allow } } }]',
  'tests: {',
]

const execute = () => 'done'
const items = [
  defineTool({ namespace: 'files', name: 'read_file', tags: ['read'], execute }),
  defineTool({ namespace: 'files', name: 'write_file', tags: ['write'], labels: ['private'], execute }),
  defineTool({ namespace: 'gone', name: 'tool', execute }),
  defineTool({
    namespace: 'mail',
    name: 'send',
    requiredScopes: ['mail.send'],
    inputSchema: { type: 'object', properties: { to: { type: 'string' }, text: { type: 'string' } } },
    execute,
  }),
  // More than one page.
  ...Array.from({ length: 300 }, (_, i) => defineTool({ namespace: 'files', name: `tool_${i}`, execute })),
  definePrompt({ namespace: 'files', name: 'summary' }),
  defineResource({ namespace: 'files', uri: 'file:///secret/a', tags: ['secret'] }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///{+path}' }),
]
const KEY = new Uint8Array(32).fill(7)
const ENV = { TOKEN: 'very-secret-token', ROOT: '/srv' }

describe('ChangeThread', () => {
  let folder: string
  let situation: Situation
  let recorded: readonly AuditRecord[]
  const threads: ChangeThread[] = []
  const openThread = (options: ChangeThreadOptions = {}) => {
    const thread = new ChangeThread(options)
    threads.push(thread)
    return thread
  }

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'toolgate-thread-'))
    const file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, FILE)
    const reading = { env: ENV }
    const config = loadConfig(file, reading)
    const people = [
      { user: 'eve', roles: ['viewer'] },
      { user: 'corp/ann', tenant: 'acme', roles: ['operator'] },
    ]
    situation = { config, people, reading, secrets: config.secrets ?? [], nowMs: Date.now() }
    recorded = await makeCalls(config.policy)
  })
  after(() => rmSync(folder, { recursive: true }))
  afterEach(() => {
    for (const thread of threads.splice(0)) thread.close()
  })

  /** Calls that were made under rules, as an audit with facts has them. */
  async function makeCalls(policy: Situation['config']['policy']): Promise<readonly AuditRecord[]> {
    const audit = memoryAudit({ inputs: 'facts', inputKey: KEY })
    const gate = createGate({ tools: items, policy, audit, groups: { writing: { tools: ['files:write_file'] } } })
    for (let i = 0; i < 300; i++) {
      const caller = [{ user: 'olga', roles: ['operator'] }, { user: 'vera', roles: ['viewer'] }, { user: 'eve' }][
        i % 3
      ]
      const view = await gate.view(caller ?? {})
      const to = ['bob@example.com', 'mallory@example.com'][i % 2]
      const tool = ['mail:send', 'files:read_file', 'files:write_file'][i % 5] ?? 'files:tool_1'
      await view.call({
        tool,
        input: tool === 'mail:send' ? { to, text: `INT-${i}` } : {},
        run: { id: `run-${i % 20}` },
      })
    }
    await gate.close()
    const records: AuditRecord[] = []
    for await (const record of audit.exportRecords()) records.push(record)
    return records
  }

  const asked = (more: Partial<AskedOf> = {}): AskedOf => ({
    situation,
    items,
    records: () =>
      readRecords({
        exportRecords: async function* () {
          yield* recorded
        },
      }),
    hashOf: (text) => hashOfText(KEY, text),
    ...more,
  })
  const never = () => new AbortController().signal

  /** The answer of this thread, or the problem with the question. */
  async function directly(question: ThreadQuestion): Promise<unknown> {
    const { records, hashOf } = asked()
    const deps = changeDeps(situation, { catalog: toSnapshot(items), records, hashOf })
    return answerQuestion(deps, question).catch((error: Error) => error.message)
  }

  it('answers every question as the same code does here', async () => {
    const proposals = [
      ...POLICIES.map((text) => ({ text, isPolicy: true })),
      ...POLICIES.map((policy) => ({
        text: `${FILE.slice(0, FILE.indexOf('policy:\n'))}${policy}\n`,
        isPolicy: false,
      })),
      { text: FILE, isPolicy: false },
      { text: FILE.replace('limits: ["mail:send:5/60"]', 'limits: ["mail:send:1/60"]'), isPolicy: false },
      {
        text: FILE.replace('roles: [viewer]', 'roles: [operator]').replace('history: { labelMs: 3600000 }', ''),
        isPolicy: false,
      },
      { text: `${FILE}# \${HOME}\nwatch: "\${HOME}"\n`, isPolicy: false },
    ]
    const questions: readonly ThreadQuestion[] = [
      ...proposals.flatMap((proposed): ThreadQuestion[] => [
        { what: 'whatIf', ...proposed, since: 0 },
        { what: 'compare', ...proposed },
        { what: 'test', tests: TESTS[0] as string, proposed },
      ]),
      ...TESTS.map((tests): ThreadQuestion => ({ what: 'test', tests, proposed: undefined })),
      { what: 'suggest', since: 0, role: undefined },
      { what: 'suggest', since: undefined, role: 'operator' },
    ]
    const thread = openThread()
    const kinds = new Set<string>()
    for (const question of questions) {
      const expected = await directly(question)
      const found = await thread.ask(question, asked(), never()).catch((error: Error) => error.message)
      assert.deepEqual(found, expected, JSON.stringify(question).slice(0, 2000))
      kinds.add(typeof expected === 'string' ? 'problem' : question.what)
    }
    assert.deepEqual([...kinds].toSorted(), ['compare', 'problem', 'suggest', 'test', 'whatIf'])
  })

  it('names the same problems in the same places', async () => {
    const thread = openThread()
    for (const name of readdirSync(CASES).filter((file) => file.endsWith('.yaml'))) {
      const question: ThreadQuestion = {
        what: 'compare',
        text: readFileSync(path.join(CASES, name), 'utf8'),
        isPolicy: false,
      }
      await assert.rejects(thread.ask(question, asked(), never()), {
        code: 'config_invalid',
        message: (await directly(question)) as string,
      })
    }
  })

  /** This thread needs half a second for it. */
  const large = () => {
    const clauses = Array.from(
      { length: 1500 },
      (_, i) =>
        `      - { match: "files:tool_${i % 300}", when: "caller.user == 'user${i}'", input: "input.a == '${i}'" }`,
    )
    return `${FILE.slice(0, FILE.indexOf('policy:\n'))}policy:\n  - deny:\n${clauses.join('\n')}\n`
  }

  it('lets the event loop turn all the time', async () => {
    const question: ThreadQuestion = { what: 'test', tests: 'tests: []', proposed: { text: large(), isPolicy: false } }
    const thread = openThread()
    await thread.ask({ what: 'test', tests: 'tests: []', proposed: undefined }, asked(), never())
    const turnsWhile = async (work: Promise<unknown>) => {
      const state = { isOpen: true }
      const ended = work.finally(() => {
        state.isOpen = false
      })
      let turns = 0
      for (; state.isOpen; turns++) await nextTurn()
      await ended
      return turns
    }
    const there = await turnsWhile(thread.ask(question, asked(), never()))
    const here = await turnsWhile(directly(question))
    assert.ok(there > 2000, `${there} turns`)
    assert.ok(there > 20 * here, `${there} turns, and ${here} without the thread`)
  })

  it('refuses a second question, and ends with its asker', async () => {
    const thread = openThread()
    const question: ThreadQuestion = { what: 'compare', text: FILE, isPolicy: false }
    const leaving = new AbortController()
    const left = thread.ask(question, asked(), leaving.signal)
    await assert.rejects(thread.ask(question, asked(), never()), { code: 'what_if_busy' })
    leaving.abort()
    await assert.rejects(left, { name: 'AbortError' })
    await assert.rejects(thread.ask(question, asked(), AbortSignal.abort()), { name: 'AbortError' })
    assert.equal((await thread.ask(question, asked(), never())).grantsNoMore, 'yes')
  })

  it('ends a question that takes too long, and what it was reading', async () => {
    let closed = 0
    const endless = asked({
      records: () =>
        readRecords({
          async *exportRecords() {
            try {
              for (;;) yield* recorded
            } finally {
              closed++
            }
          },
        }),
    })
    const question: ThreadQuestion = { what: 'suggest', since: 0, role: undefined }
    const thread = openThread({ deadlineMs: 3000 })
    await assert.rejects(thread.ask(question, endless, never()), {
      code: 'what_if_too_large',
      message: 'The question takes longer than 3 s, and was ended; the command has no such bound.',
    })
    assert.equal(closed, 1)
  })

  it('ends a question that takes too much memory', async () => {
    const thread = openThread({ maxMb: 16 })
    await assert.rejects(thread.ask({ what: 'compare', text: large(), isPolicy: false }, asked(), never()), {
      code: 'what_if_too_large',
      message: /^The question takes more than 16 MB of memory/,
    })
  })

  it('passes on what fails here while it reads, and answers the next question', async () => {
    const failing = asked({
      records: () =>
        readRecords({
          async *exportRecords() {
            yield* recorded.slice(0, 1)
            throw new RangeError('the store has failed')
          },
        }),
    })
    const question: ThreadQuestion = { what: 'suggest', since: 0, role: undefined }
    const thread = openThread()
    await assert.rejects(thread.ask(question, failing, never()), {
      name: 'RangeError',
      message: 'the store has failed',
    })
    const next = await thread.ask(question, asked(), never())

    assert.ok(next.learned > 0)
  })

  it('says so where the configuration in force is not data', async () => {
    const policy = [{ deny: [{ match: '*', when: () => true }] }]
    const coded = asked({ situation: { ...situation, config: { ...situation.config, policy } } })
    const question: ThreadQuestion = { what: 'compare', text: FILE, isPolicy: false }
    const thread = openThread()
    await assert.rejects(thread.ask(question, coded, never()), { code: 'reload_refused', message: /holds functions/ })
    assert.equal((await thread.ask(question, asked(), never())).grantsNoMore, 'yes')
  })

  it('has no thread before the first question, and none once it is idle or closed', async () => {
    const started: Worker[] = []
    const note = (worker: Worker) => void started.push(worker)
    process.on('worker', note)
    try {
      const thread = openThread({ idleMs: 1 })
      await nextTurn()
      assert.equal(started.length, 0)
      const question: ThreadQuestion = { what: 'test', tests: 'tests: []', proposed: undefined }
      for (const count of [1, 2]) {
        await thread.ask(question, asked(), never())
        assert.equal(started.length, count)
        const worker = started[count - 1] as Worker
        await new Promise((resolve) => worker.once('exit', resolve))
      }
      const kept = openThread()
      await kept.ask(question, asked(), never())
      const ended = new Promise((resolve) => started[2]?.once('exit', resolve))
      kept.close()
      await ended
    } finally {
      process.off('worker', note)
    }
  })
})
