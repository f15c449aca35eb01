import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { auditEntry } from '@toolgate/testing'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { checkpointsPath } from '@toolgate/stores/verify'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { tempFolder } from './support/gateway.ts'
import { buildGo, type GoProgram } from './support/go.ts'

const run = (...args: readonly string[]) => runCommand('http://127.0.0.1:1', 'audit', ...args)
const RECORDS = 20

withBinaries(['go'], ({ go }) => {
  describe('proofs about an audit in a file, read by the Go packages sumdb/note and sumdb/tlog', () => {
    let program: GoProgram | undefined
    const folder = tempFolder()
    before(() => {
      program = buildGo(go, 'c2sp')
    })
    after(() => {
      program?.remove()
      folder.remove()
    })

    for (const [store, open] of [
      ['SQLite', openSqliteAudit],
      ['JSON lines', openJsonlAudit],
    ] as const)
      it(`hold for every record and for the growth of the log, in ${store}`, async () => {
        const at = (name: string): string => join(folder.path, `${store.split(' ')[0]}-${name}`)
        const file = at('audit')
        for (const part of [1, 2, 3]) {
          const audit = open({ path: file })
          for (let i = 0; i < RECORDS; i++)
            await audit.write(auditEntry({ event: 'tool_result', tool_call_id: `${part}-${i}` }))
          await audit.close()
        }
        const [key = ''] = readFileSync(`${checkpointsPath(file)}.pub`, 'utf8').split('\n')
        const check = (...files: readonly string[]) =>
          spawnSync(program?.file ?? '', [key, ...files], { encoding: 'utf8' })
        const [first = ''] = readFileSync(checkpointsPath(file), 'utf8').split('\n')
        writeFileSync(at('old.note'), JSON.parse(first).note)

        for (const seq of [1, 22, 23, 44, 45, 66])
          assert.equal((await run('prove', '--record', String(seq), '--file', file, '--out', at('proofs'))).code, 0)
        const names = readdirSync(at('proofs'))
        assert.equal(names.length, 6)
        for (const name of names) {
          const { status, stdout, stderr } = check(join(at('proofs'), name))
          assert.deepEqual([status, stderr], [0, ''])
          assert.match(stdout, new RegExp(`"seq":${name.split('-')[0]},`))
          const text = readFileSync(join(at('proofs'), name), 'utf8')
          writeFileSync(at('wrong'), text.replace(/^index \d+$/m, 'index 9'))
          assert.equal(check(at('wrong')).status, 1)
        }

        const growth = await run('prove', '--from', at('old.note'), '--file', file)
        writeFileSync(at('growth'), growth.out)
        const { status, stdout } = check(at('growth'), at('old.note'))
        assert.deepEqual([status, /^1 to \d+\n$/.test(stdout)], [0, true])
      })
  })
})
