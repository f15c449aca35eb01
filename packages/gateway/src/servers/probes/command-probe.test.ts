import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAvailability } from '@toolgate/core/groups'
import { surroundings } from '../../util/surroundings.ts'
import { commandProbe, type CommandProbeOptions } from './command-probe.ts'
import { asking } from '../../testing/probes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-probe-'))
after(() => rmSync(folder, { recursive: true }))

const NODE = process.execPath
const node = (script: string, options?: CommandProbeOptions) => commandProbe([NODE, '-e', script], options)
const ask = async (probe: ReturnType<typeof node>) => (await probe.ask(asking())) as { reason: string; detail?: string }

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5)
}

function lives(pid: number): boolean {
  try {
    // A killed process whose parent is gone may wait to be buried: it does not run.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('commandProbe', () => {
  it('works if the command exits with code 0, and names any other code', async () => {
    assert.equal(await node('').ask(asking()), true)
    assert.deepEqual(await ask(node('process.exit(3)')), {
      available: false,
      reason: `the command ${path.basename(NODE)} exits with code 3`,
    })
    assert.match((await ask(node('process.kill(process.pid)'))).reason, /was ended by SIGTERM$/)
  })

  it('has no shell: shell syntax is an argument', async () => {
    const file = path.join(folder, 'made-by-a-shell')
    const probe = commandProbe(
      [NODE, '-e', 'process.exit(process.argv[1] === process.env.TOLD ? 0 : 1)', `; touch ${file} $(touch ${file})`],
      {
        env: { TOLD: `; touch ${file} $(touch ${file})` },
      },
    )
    assert.equal(await probe.ask(asking()), true)
    assert.equal(existsSync(file), false)
    assert.match((await ask(commandProbe([`true; touch ${file}`]))).reason, /is not found$/)
  })

  it('gets its surroundings and the named variables, and nothing else of the environment', async () => {
    process.env['TOOLGATE_TEST_SECRET'] = 'very-secret'
    try {
      const script = `process.stderr.write(Object.keys(process.env).sort().join(' ')); process.exit(1)`
      const { detail } = await ask(node(script, { env: { NAMED: 'x' } }))
      const names = (detail ?? '').split(' ').filter((name) => !name.startsWith('__'))
      assert.deepEqual(names, [...Object.keys(surroundings()), 'NAMED'].toSorted())
    } finally {
      delete process.env['TOOLGATE_TEST_SECRET']
    }
  })

  it('shows people the last line that it wrote, without secrets, and callers nothing of it', async () => {
    const script = `console.error('first'); console.error('login failed: password=hunter2hunter2'); process.exit(1)`
    const { reason, detail } = await ask(node(script))
    assert.match(reason, /exits with code 1$/)
    assert.match(detail ?? '', /^login failed/)
    assert.doesNotMatch(detail ?? '', /hunter2/)
  })

  it('shows nothing of a line whose beginning is lost: it may be the rest of a secret', async () => {
    const script = `process.stderr.write('password=' + 'hunter2'.repeat(1000), () => process.exit(1))`
    assert.equal((await ask(node(script))).detail, undefined)
  })

  it('names the problem if it cannot be started', async () => {
    const plain = path.join(folder, 'plain')
    writeFileSync(plain, 'text')
    chmodSync(plain, 0o600)
    assert.equal(
      (await ask(commandProbe(['no-such-command-here']))).reason,
      'the command no-such-command-here is not found',
    )
    assert.equal((await ask(commandProbe([plain]))).reason, 'the command plain may not be executed')
    const nowhere = commandProbe(['true'], { cwd: path.join(folder, 'gone') })
    assert.equal((await ask(nowhere)).reason, 'the command true cannot be started: its folder is not there')
  })

  it('is killed at its deadline with all its descendants, also those that ignore signals', async () => {
    const file = path.join(folder, 'pids')
    const child = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`
    const script = `
      process.on('SIGTERM', () => {})
      const { spawn } = require('child_process')
      const child = spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'inherit' })
      require('fs').writeFileSync(${JSON.stringify(`${file}.new`)}, process.pid + ' ' + child.pid)
      require('fs').renameSync(${JSON.stringify(`${file}.new`)}, ${JSON.stringify(file)})
      setInterval(() => {}, 1000)`
    const controller = new AbortController()
    const answer = node(script).ask(asking(controller.signal))
    await until(() => existsSync(file))
    const pids = readFileSync(file, 'utf8').split(' ').map(Number)
    assert.ok(pids.length === 2 && pids.every(lives))
    controller.abort()
    assert.equal(((await answer) as { available: boolean }).available, false)
    await until(() => !pids.some(lives))
  })

  it('leaves nothing running when it ends by itself', async () => {
    const file = path.join(folder, 'left')
    const script = `
      const { spawn } = require('child_process')
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
      require('fs').writeFileSync(${JSON.stringify(file)}, String(child.pid))
      child.unref()
      process.exit(0)`
    assert.equal(await node(script).ask(asking()), true)
    const pid = Number(readFileSync(file, 'utf8'))
    await until(() => !lives(pid))
  })

  it('is killed if it never stops writing errors; its output is ignored', async () => {
    const flood = `const line = 'x'.repeat(65536); for (;;) require('fs').writeSync(2, line)`
    assert.match((await ask(node(flood))).reason, /writes more than 1 MiB$/)
    assert.equal(await node(`process.stdout.write('x'.repeat(5e6))`).ask(asking()), true)
  })

  it('is watched by the reaper for as long as it runs', async () => {
    const watched: string[] = []
    const reaper = { watch: () => watched.push('watch'), release: () => watched.push('release') }
    await node('', { reaper }).ask(asking())
    assert.deepEqual(watched, ['watch', 'release'])
  })

  it('that hangs is late for its groups at the deadline', async () => {
    const availability = createAvailability({
      slow: { tools: [], availableWhen: [node('setInterval(() => {}, 1000)', { timeoutMs: 30 })] },
    })
    await availability.check()
    assert.equal(availability.get('slow')?.reason, `the command ${path.basename(NODE)} did not answer within 0.03 s`)
    availability.close()
  })

  it('is one probe for one command line, folder and environment', () => {
    const keys = [node('1'), node('1', { cwd: '/' }), node('1', { env: { A: '1' } }), node('2')].map(({ key }) => key)
    assert.equal(new Set(keys).size, 4)
    assert.equal(node('1').key, node('1', { timeoutMs: 5 }).key)
  })
})
