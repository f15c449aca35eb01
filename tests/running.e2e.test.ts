import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { withBinaries } from './support/binaries.ts'
import { tempFolder } from './support/gateway.ts'
import { send } from './support/http.ts'
import { blocksOf, type Machine, makeMachine } from './support/machine.ts'
import { freePort } from './support/own-server.ts'
import { isAlive } from './support/processes.ts'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'

/** The page `docs/guide/running.md` and those that it leads to: every line of their shell blocks, in order, on one machine. */

const ROOT = path.resolve(import.meta.dirname, '..')
const PAGE = 'docs/guide/running.md'
/** The line of the section after `As a service`. */
const SETUP_ENDS = readFileSync(path.join(ROOT, PAGE), 'utf8').split('\n').indexOf('## In a container')
const UNIT = path.join(ROOT, 'deploy/systemd/toolgate.service')
const folder = tempFolder()
let server: ModernServer
let machine: Machine
let url: string

after(() => folder.remove())

/** `setsid` is Linux's own: elsewhere the page is not tried. */
withBinaries(['bash', 'curl', 'openssl', 'setsid'], () => {
  describe(PAGE, () => {
    before(async () => {
      server = await startModernServer()
      const port = await freePort()
      url = `http://127.0.0.1:${port}`
      machine = makeMachine(folder.path, { 8787: String(port), 'https://mcp.example.com/mcp': server.url })
    })

    after(async () => {
      if (existsSync(machine.at('/toolgate.pid'))) {
        const pid = Number(readFileSync(machine.at('/toolgate.pid'), 'utf8'))
        if (isAlive(pid)) process.kill(pid, 'SIGKILL')
      }
      await server?.close()
    })

    for (const { page, line, text } of blocksInOrder())
      it(`${page}, line ${line} runs: ${text.split('\n')[0]}`, async () => {
        const { code, out, err } = await machine.run(text)
        assert.equal(code, 0, `${out}\n${err}\n${logOf()}`)
      })

    it('leads to a gateway that serves its callers', async () => {
      const list = (id: string) => {
        const key = readFileSync(machine.at(`/etc/toolgate/credentials/${id}`), 'utf8')
        const { headers, body } = toMessage(MODERN, 'tools/list')
        return send(`${url}/mcp`, {
          headers: { ...headers, authorization: `Bearer ${key}` },
          body: JSON.stringify(body),
        })
      }
      const answer = await list('vera-2')
      assert.equal(answer.status, 200, logOf())
      assert.ok(((answer.json() as RpcAnswer).result?.tools ?? []).length > 0)
      assert.equal((await list('vera-1')).status, 401)
    })

    it('has a backup of its own, and the record of its restore', async () => {
      assert.ok(existsSync(machine.at('/var/backups/toolgate-1/backup.json')))
      const { out } = await machine.run(
        '/opt/toolgate/node_modules/.bin/toolgate audit query --event audit_restored --file /var/lib/toolgate/audit.db',
      )
      assert.match(out, /restored from a backup/)
    })

    it('signs the audit with a new key, and the records of both verify', () => {
      const keys = readFileSync(machine.at('/var/lib/toolgate/checkpoints/audit.db.checkpoints.pub'), 'utf8')
      assert.equal(keys.match(/^audit\.db\+[\da-f]{8}\+\S+$/gm)?.length, 2)
      assert.ok(existsSync(machine.at('/var/backups/audit.db.checkpoints.key')))
    })

    it('fails a reload of a file with a mistake, with its line, and goes on', async () => {
      const file = machine.at('/etc/toolgate/toolgate.yaml')
      const text = readFileSync(file, 'utf8')
      writeFileSync(file, `${text}\npolcy: []\n`)
      const { code, out, err } = await machine.run('systemctl reload toolgate')
      assert.notEqual(code, 0)
      assert.match(out + err, /toolgate\.yaml:\d+:1: polcy: unknown key/)
      writeFileSync(file, text)
      assert.equal((await send(`${url}/readyz`, { method: 'GET' })).status, 200)
    })

    it('stops within the time of the unit, and everything is written', async () => {
      const { code, err } = await machine.run('systemctl stop toolgate')
      assert.equal(code, 0, err)
      const verify = await machine.run(
        '/opt/toolgate/node_modules/.bin/toolgate audit verify --file /var/lib/toolgate/audit.db',
      )
      assert.equal(verify.code, 0, verify.out + verify.err)
    })
  })
})

/** A reader sets up the service first, then what is in front of it and watches it, and then reads on. */
function blocksInOrder() {
  const of = (page: string) => blocksOf(page, 'sh').map((block) => ({ page, ...block }))
  const isSetup = ({ line }: { readonly line: number }) => line < SETUP_ENDS
  const running = of(PAGE)
  const led = ['behind-a-proxy', 'monitoring'].flatMap((name) => of(`docs/guide/${name}.md`))
  return [...running.filter(isSetup), ...led, ...running.filter((block) => !isSetup(block))]
}

describe('deploy/systemd/toolgate.service', () => {
  const of = (key: string) =>
    [...readFileSync(UNIT, 'utf8').matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map((m) => m[1])

  it('gives a stop more time than calls have by default', () => {
    assert.ok(Number(of('TimeoutStopSec')[0]) >= 30 + 2)
  })

  withBinaries(['systemd-analyze'], ({ 'systemd-analyze': analyze }) => {
    /** It checks that programs are there. */
    const unit = path.join(folder.path, 'toolgate.service')
    before(() => {
      const text = readFileSync(UNIT, 'utf8').replaceAll('/opt/toolgate/node_modules/.bin/toolgate', '/bin/true')
      writeFileSync(unit, text)
    })

    it('is clean by systemd-analyze verify', () => {
      const { status, stdout, stderr } = spawnSync(analyze, ['verify', unit], { encoding: 'utf8' })
      assert.deepEqual([status, stdout, stderr], [0, '', ''])
      writeFileSync(unit, readFileSync(unit, 'utf8').replace('KillMode=mixed', 'KilMode=mixed'))
      assert.match(spawnSync(analyze, ['verify', unit], { encoding: 'utf8' }).stderr, /KilMode/)
    })

    it('is as confined as the page says', () => {
      const said = /`systemd-analyze security` gives it (\d\.\d) of 10/.exec(
        readFileSync(path.join(ROOT, PAGE), 'utf8'),
      )
      const args = ['security', '--offline=true', '--no-pager', `--threshold=${Number(said?.[1]) * 10}`, unit]
      execFileSync(analyze, args, { stdio: 'pipe' })
    })
  })
})

function logOf(): string {
  const file = machine.at('/toolgate.log')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
