import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { runProgram } from '../packages/cli/src/program.ts'
import { createStopSignals } from '../packages/cli/src/stop-signals.ts'
import { fakeIo } from '../packages/cli/src/testing/fake-io.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const folder = tempFolder()
let gateway: TestGateway
let witness: RecordingServer

/** A server that writes to stderr as it starts. */
const CHATTY = `
console.error('starting with token=ghp_0123456789abcdefghijklmnopqrstuvwxyz')
process.stdin.on('data', (chunk) => {
  for (const line of String(chunk).split('\\n').filter(Boolean)) {
    const { id, method, params } = JSON.parse(line)
    const results = {
      initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } }),
      'tools/list': () => ({ tools: [] }),
    }
    if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.() ?? {} }) + '\\n')
  }
})`

before(async () => {
  witness = await startRecordingServer(
    [
      { name: 'echo', run: ({ text }) => ({ content: [{ type: 'text', text: `You said ${String(text)}` }] }) },
      { name: 'fail', run: () => ({ isError: true, content: [{ type: 'text', text: 'It \u001b[2J failed.' }] }) },
      { name: 'secret' },
    ],
    { era: 'modern' },
  )
  gateway = await startTestGateway({
    servers: [httpServer('witness', witness.url), nodeServer('chatty', ['-e', CHATTY])],
    policy: [{ deny: [{ match: 'witness:secret', unless: "'admin' in caller.roles" }] }],
  })
})
after(async () => {
  await gateway?.close()
  await witness?.close()
  folder.remove()
})

async function toolgate(...args: string[]) {
  const io = fakeIo()
  const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
  const start = () => assert.fail('nothing is started')
  const code = await runProgram([...args, '--url', gateway.url], { io, version: '1', signals, start })
  return { code, out: io.out(), err: io.err() }
}

describe('toolgate call', () => {
  it('sends no key to another machine that only a file of the folder names', async () => {
    const file = join(folder.path, 'foreign.yaml')
    const callers = 'callers: [{ user: vera, key: key-of-vera-16-chars }]'
    writeFileSync(file, `servers: {}\nlisten: { host: tools.invalid, port: 443 }\n${callers}\n`)
    const run = async (env: Readonly<Record<string, string>>, ...args: string[]) => {
      const io = fakeIo(env)
      const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
      const command = ['call', 'witness:echo', '--config', file, ...args]
      const code = await runProgram(command, { io, version: '1', signals, start: () => assert.fail() })
      return [code, io.err()] as const
    }
    for (const [code, err] of [
      await run({ TOOLGATE_KEY: KEYS.viewer }),
      await run({ TOOLGATE_KEY: KEYS.viewer }, '--as', 'vera'),
    ]) {
      assert.equal(code, 2)
      assert.match(err, /No key is sent to http:\/\/tools\.invalid:443\.\n.*which is another machine/)
    }
    // Whoever gives the address says that it may have a key of the folder.
    const [code, err] = await run({}, '--as', 'vera', '--url', 'http://other.invalid')
    assert.equal(code, 3, err)
  })

  const call = (...args: string[]) => toolgate('call', ...args, '--key', KEYS.viewer)

  it('calls a tool by its id and by its name, and prints what it says', async () => {
    for (const tool of ['witness:echo', 'witness__echo']) {
      const { code, out, err } = await call(tool, '--input', '{"text":"hello"}')
      assert.deepEqual([code, out, err], [0, 'You said hello\n', ''])
    }
    const file = join(folder.path, 'input.json')
    writeFileSync(file, '{"text":"from a file"}')
    assert.equal((await call('witness:echo', '--input', `@${file}`)).out, 'You said from a file\n')
  })

  it('ends with 1 if the tool fails, and lets it not control the terminal', async () => {
    const { code, out } = await call('witness:fail')
    assert.deepEqual([code, out], [1, 'It \\u001b[2J failed.\n'])
  })

  it('prints the result as MCP has it for programs', async () => {
    const { out } = await call('witness:echo', '--input', '{"text":"x"}', '--json')
    assert.deepEqual((JSON.parse(out) as { content: object }).content, [{ type: 'text', text: 'You said x' }])
  })

  it('tells of a hidden tool what it tells of none', async () => {
    const hidden = await call('witness:secret')
    const absent = await call('witness:secrit')
    assert.equal(hidden.code, 1)
    assert.equal(hidden.err.replaceAll('secret', '…'), absent.err.replaceAll('secrit', '…'))
    assert.equal((await toolgate('call', 'witness:secret', '--key', KEYS.admin)).code, 0)
  })

  it('names the nearest tool', async () => {
    assert.match((await call('witness:ecko')).err, /not available to this caller\.\nDid you mean witness__echo\?/)
  })

  it('refuses an input that is not an object, and a key that is not known', async () => {
    for (const input of ['[1]', '{', '@/nowhere']) assert.equal((await call('witness:echo', '--input', input)).code, 2)
    const refused = await toolgate('call', 'witness:echo', '--key', 'not-a-key')
    assert.deepEqual([refused.code, /The key is not known\..*--as/.test(refused.err)], [5, true])
  })

  it('finds the key of a user beside the configuration', async () => {
    const config = join(folder.path, 'toolgate.yaml')
    writeFileSync(config, `servers: {}\ncallers: [{ key: ${KEYS.viewer}, user: viewer }]\npolicy: [{ allow: ["*"] }]\n`)
    const { out } = await toolgate(
      'call',
      'witness:echo',
      '--as',
      'viewer',
      '--config',
      config,
      '--input',
      '{"text":"y"}',
    )
    assert.equal(out, 'You said y\n')
    const wrong = await toolgate('call', 'witness:echo', '--as', 'viewr', '--config', config)
    assert.deepEqual([wrong.code, /Did you mean viewer\?/.test(wrong.err)], [2, true])
  })
})

describe('toolgate logs', () => {
  it('prints what a server wrote to stderr, without secrets', async () => {
    const { code, out } = await toolgate('logs', 'chatty', '--key', KEYS.console)
    assert.equal(code, 0)
    assert.match(out, /stderr {2}starting with token=\[redacted:token\]\n/)
    assert.match(out, /info {4}is ready: MCP 2025-11-25/)
    assert.ok(
      gateway.log.every(({ message }) => !message.includes('stderr')),
      'the log of the gateway has it not',
    )
  })

  it('names the nearest server', async () => {
    const { code, err } = await toolgate('logs', 'chaty', '--key', KEYS.console)
    assert.deepEqual([code, err], [2, 'error  No server is named "chaty". Did you mean "chatty"?\n'])
  })
})
