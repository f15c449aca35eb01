import assert from 'node:assert/strict'
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createGate, defineTool, type Policy } from '@toolgate/core'
import { loadConfig } from '@toolgate/gateway'
import type { JsonObject } from '@toolgate/values/json'
import { parse, stringify } from 'yaml'
import { tempFolder } from './support/gateway.ts'
import { freePort } from './support/own-server.ts'

/** Every paste of `docs/guide/how-do-i.md`: YAML is loaded as a part of a file, and commands run beside a gateway. */

const PAGE = path.resolve(import.meta.dirname, '../docs/guide/how-do-i.md')
const BIN = path.resolve(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const MODULES = path.join(createRequire(import.meta.url).resolve('fast-check/package.json'), '../..')
const SERVER = path.join(MODULES, '@modelcontextprotocol/server-filesystem/dist/index.js')
const [, ...sections] = readFileSync(PAGE, 'utf8').split(/^### /m)
const questions = sections.map((section) => ({
  title: section.slice(0, section.indexOf('\n')),
  yaml: blockOf(section, 'yaml'),
  commands: (blockOf(section, 'sh') ?? '').split('\n').filter(Boolean),
  links: [...section.matchAll(/\]\(([^)#]+)/g)].map(([, link = '']) => link),
}))
const folder = tempFolder()
const env = { ...process.env, HOME: folder.path, TOOLGATE_URL: '', TOOLGATE_KEY: '' }
let serving: ChildProcess | undefined

after(async () => {
  if (serving && serving.exitCode === null) {
    serving.kill('SIGTERM')
    await once(serving, 'close')
  }
  folder.remove()
})

function blockOf(text: string, language: string): string | undefined {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, 'm').exec(text)?.[1]
}

const toolgate = (...args: readonly string[]): Promise<{ code: number; out: string }> =>
  new Promise((resolve) => {
    const options = { cwd: folder.path, env }
    execFile(process.execPath, ['--conditions=toolgate-source', BIN, ...args], options, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out: out + err })
    })
  })

/** `toolgate why` ends with 1 where the tool is not visible, which is what the question is about. */
const NO = new Set(['toolgate why files:write_file --as reader'])
/** Names of tools that a server of the example would have. */
const EXPECTED = new Set(['selector_unmatched', 'name_unknown'])

const TOOLS = [
  'files:write_file',
  'files:edit_file',
  'files:create_directory',
  'files:move_file',
  'files:read_file',
  'pay:send',
  'db:delete_row',
].map((id) => {
  const [namespace, name = ''] = id.split(':')
  return defineTool({
    namespace: namespace as string,
    name,
    tags: name.startsWith('read') ? ['read'] : [],
    execute: () => 'done',
  })
})

type DecidedCall = readonly [tool: string, input: JsonObject, status: 'done' | 'refused' | 'waiting']

/** Questions with calls, and how each call ends. */
const DECIDED: readonly (readonly [title: string, ...calls: readonly DecidedCall[]])[] = [
  [
    'Allow writing in one folder only',
    ['files:write_file', { path: '/workspace/out/a.txt' }, 'done'],
    ['files:write_file', { path: '/workspace/out/../a.txt' }, 'refused'],
    ['files:write_file', { path: '/workspace/outside' }, 'refused'],
    ['files:edit_file', { path: '/workspace/out/%2e%2e/a' }, 'refused'],
    ['files:read_file', { path: '/etc/hosts' }, 'done'],
  ],
  [
    'Ask a person above an amount',
    ['pay:send', { amount: 100 }, 'done'],
    ['pay:send', { amount: 100.01 }, 'waiting'],
    ['pay:send', {}, 'refused'],
  ],
  ['Let two people approve', ['pay:send', { amount: 1 }, 'waiting']],
  ['Give two roles different tools', ['files:read_file', {}, 'done'], ['pay:send', {}, 'refused']],
  ['Hide a tool from everybody', ['files:move_file', {}, 'refused'], ['files:read_file', {}, 'done']],
  ['Try a rule without enforcing it', ['db:delete_row', {}, 'done']],
]

describe('How do I …?', () => {
  it('has at least thirty questions, each with a paste or a page', () => {
    assert.ok(questions.length >= 30, `${questions.length}`)
    const bare = questions.filter(({ yaml, commands, links }) => !yaml && commands.length === 0 && links.length === 0)
    assert.deepEqual(bare, [])
  })

  describe('YAML', () => {
    before(() => {
      mkdirSync(path.join(folder.path, '.toolgate/secrets'), { recursive: true })
      writeFileSync(path.join(folder.path, '.toolgate/secrets/tickets'), 'a-secret')
    })

    for (const [i, { title, yaml }] of questions.entries())
      if (yaml !== undefined)
        it(`is a part of a file: ${title}`, () => {
          const file = path.join(folder.path, `part-${i}.yaml`)
          writeFileSync(file, withPart(yaml))
          const { warnings = [] } = loadConfig(file)
          const problems = warnings.filter(({ code }) => !EXPECTED.has(code))
          assert.deepEqual(problems, [])
        })

    for (const [title, ...calls] of DECIDED)
      it(`decides as its question says: ${title}`, async () => {
        const { yaml = '' } = questions.find((one) => one.title === title) ?? {}
        const { policy } = parse(yaml) as { policy: readonly Policy[] }
        const gate = createGate({ tools: TOOLS, policy: [{ allow: ['*'] }, ...policy] })
        for (const [tool, input, status] of calls) {
          const view = await gate.view({ user: 'ann', roles: ['reader'] })
          assert.equal((await view.call({ tool, input })).status, status, `${tool} ${JSON.stringify(input)}`)
        }
        await gate.close()
      })
  })

  describe('commands', () => {
    before(async () => {
      assert.equal((await toolgate('init')).code, 0)
      mkdirSync(path.join(folder.path, 'docs'))
      const added = await toolgate('add', 'files', '--shared', '--', 'node', SERVER, './docs')
      assert.equal(added.code, 0, added.out)
      const file = path.join(folder.path, 'toolgate.yaml')
      writeFileSync(file, readFileSync(file, 'utf8').replace('port: 8787', `port: ${await freePort()}`))
      writeFileSync(
        path.join(folder.path, 'new.yaml'),
        readFileSync(file, 'utf8').replace('tag:read', 'files:read_text_file'),
      )
      serving = spawn(process.execPath, ['--conditions=toolgate-source', BIN, 'serve'], { cwd: folder.path, env })
      await once(serving.stdout ?? assert.fail(), 'data')
    })

    for (const { title, commands } of questions)
      for (const command of commands)
        it(`run: ${title}: ${command}`, async () => {
          const [program, ...args] = wordsOf(command)
          assert.equal(program, 'toolgate')
          const { code, out } = await toolgate(...args)
          assert.equal(code, NO.has(command) ? 1 : 0, out)
        })
  })
})

/** Returns a whole file with a part of the page in it. */
function withPart(part: string): string {
  const base: Readonly<Record<string, unknown>> = {
    servers: { files: { command: 'node', args: [SERVER], per: 'shared' }, pay: { url: 'https://pay.example.com/mcp' } },
    callers: [
      { user: 'reader', roles: ['reader'], key: 'a-key-of-reader' },
      { user: 'writer', roles: ['writer'], key: 'a-key-of-writer' },
      { user: 'owner', for: 'console', roles: ['approver'], key: 'a-key-of-owner' },
    ],
    policy: [{ allow: ['*'] }],
  }
  const merged = Object.entries(parse(part) as Readonly<Record<string, unknown>>).map(([key, value]) => {
    const own = base[key]
    if (Array.isArray(own)) return [key, [...own, ...(value as unknown[])]] as const
    return [key, own && value ? { ...own, ...value } : value] as const
  })
  return stringify({ ...base, ...Object.fromEntries(merged) })
}

/** Splits a command as a shell does, as far as the page needs it. */
function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}
