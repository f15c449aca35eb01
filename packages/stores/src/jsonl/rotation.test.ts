import assert from 'node:assert/strict'
import {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { auditEntry } from '@toolgate/testing'
import type { AuditFileOptions, FileAudit } from '../audit-options.ts'
import { openJsonlAudit } from '../jsonl.ts'
import { proveCall } from '../testing/prove-call.ts'
import { readAll, readCallIds } from '../testing/read-all.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { verifyAudit } from '../verify.ts'

const scratch = (t: TestContext): string => join(scratchFolder(t), 'audit.jsonl')
const closedOf = (path: string): string[] =>
  readdirSync(dirname(path))
    .filter((name) => /^audit\.jsonl[.-]\d/.test(name))
    .toSorted()

async function write(audit: FileAudit, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await audit.write(auditEntry({ event: 'tool_result', tool_call_id: id }))
  await audit.flush()
}

/** An audit that another program meddles with while it is open. */
async function meddled(
  t: TestContext,
  meddle: (path: string, audit: FileAudit) => unknown,
  options: Partial<AuditFileOptions> = {},
): Promise<{ path: string; faults: readonly string[] }> {
  const path = scratch(t)
  const faults: string[] = []
  const audit = openJsonlAudit({ path, onFault: (error) => void faults.push(String(error)), ...options })
  await write(audit, 'a', 'b')
  // After the first checkpoint, which a rotation needs.
  await audit.rotate()
  await write(audit, 'c')
  await meddle(path, audit)
  await write(audit, 'd')
  await write(audit, 'e')
  await audit.close()
  return { path, faults }
}

describe('rotation of JSON lines', () => {
  it('closes whole files, with names that sort, and the chain goes on over them', async (t) => {
    const path = scratch(t)
    const audit = openJsonlAudit({ path, rotate: { bytes: 1000 }, checkpoints: { everyMs: 5 } })
    for (let i = 0; closedOf(path).length < 4; i++) await write(audit, `c${i}`)
    const ids = await readCallIds(audit)
    assert.deepEqual(
      ids,
      ids.map((_, i) => `c${i}`),
    )
    await audit.close()
    const closed = closedOf(path)
    assert.match(closed[0] ?? '', /^audit\.jsonl\.000000000001-0000000000\d\d$/)
    for (const name of closed) assert.equal(readFileSync(join(dirname(path), name), 'utf8').at(-1), '\n')
    const { status, findings, records } = await verifyAudit({ path })
    assert.deepEqual([status, findings, records], ['ok', [], ids.length + 2])
    const reader = openJsonlAudit({ path, readOnly: true })
    assert.equal((await Array.fromAsync(reader.exportRecords())).length, ids.length + 2)
    assert.deepEqual(
      (await reader.query({ call: 'c0' })).map(({ seq }) => seq),
      [2],
    )
    const counts = await reader.countOutcomes({ since: 0, until: 8e15, bucketMs: 8e15 })
    assert.deepEqual([counts.buckets[0]?.done, counts.newestSeq], [ids.length, ids.length + 2])
    assert.equal((await proveCall('c0', path)).proofs.length, 1)
    await reader.close()
  })

  it('closes files by their age, also between two calls', async (t) => {
    const path = scratch(t)
    let nowMs = 1e12
    const audit = openJsonlAudit({ path, rotate: { everyMs: 1000 }, checkpoints: { everyMs: 5 }, nowMs: () => nowMs })
    await write(audit, 'a')
    nowMs += 999
    await audit.rotate()
    await write(audit, 'b')
    nowMs += 1001
    while (closedOf(path).length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    await audit.close()
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })

  it('is done on demand, and says which file was closed', async (t) => {
    const path = scratch(t)
    const audit = openJsonlAudit({ path })
    await write(audit, 'a')
    assert.equal(await audit.rotate(), `${path}.000000000001-000000000002`)
    assert.equal(await audit.rotate(), undefined)
    await audit.close()
    await assert.rejects(async () => audit.rotate(), /closed/)
  })

  it('goes on after a kill between its two steps', async (t) => {
    const path = scratch(t)
    const audit = openJsonlAudit({ path })
    await write(audit, 'a')
    await audit.rotate()
    const killed = `${dirname(path)}-killed`
    t.after(() => rmSync(killed, { recursive: true }))
    cpSync(dirname(path), killed, { recursive: true })
    await audit.close()
    // The file was renamed, and no other begun.
    rmSync(join(killed, 'audit.jsonl'))
    const next = openJsonlAudit({ path: join(killed, 'audit.jsonl') })
    await write(next, 'b')
    assert.deepEqual(await readCallIds(next), ['a', 'b'])
    await next.close()
    assert.deepEqual((await verifyAudit({ path: join(killed, 'audit.jsonl') })).findings, [])
  })

  it('does not begin anew when the file was renamed while it was closed', async (t) => {
    const path = scratch(t)
    const first = openJsonlAudit({ path })
    await write(first, 'a')
    await first.close()
    renameSync(path, `${path}.1`)
    const second = openJsonlAudit({ path })
    await write(second, 'b')
    assert.deepEqual(await readCallIds(second), ['a', 'b'])
    await second.close()
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })

  it('refuses an earlier file in the place of the last', async (t) => {
    const path = scratch(t)
    const first = openJsonlAudit({ path })
    await write(first, 'a')
    await first.close()
    copyFileSync(path, `${path}.old`)
    const second = openJsonlAudit({ path })
    await write(second, 'b')
    await second.close()
    renameSync(path, `${path}.1`)
    renameSync(`${path}.old`, path)
    assert.throws(() => openJsonlAudit({ path }), /has later records/)
  })

  it('reads no copies such as audit.jsonl.bak', async (t) => {
    const path = scratch(t)
    const audit = openJsonlAudit({ path })
    await write(audit, 'a')
    copyFileSync(path, `${path}.bak`)
    assert.deepEqual(await readCallIds(audit), ['a'])
    await audit.close()
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })
})

describe('a JSON lines audit whose file another program', () => {
  it('renames, as logrotate does, goes on in a new file and finds the old one by its records', async (t) => {
    const { path, faults } = await meddled(t, (file) => renameSync(file, `${file}.1`))
    assert.deepEqual(faults, [])
    assert.equal(closedOf(path).length, 2)
    assert.ok(readFileSync(path, 'utf8').includes('"e"'))
    const { status, findings } = await verifyAudit({ path })
    assert.deepEqual([status, findings], ['ok', []])
    const reader = openJsonlAudit({ path, readOnly: true })
    assert.deepEqual(await readCallIds(reader), ['a', 'b', 'c', 'd', 'e'])
    await reader.close()
  })

  it('renames and creates anew, as logrotate does with create, goes on in the new file', async (t) => {
    const { path, faults } = await meddled(t, (file) => {
      renameSync(file, `${file}-20261123`)
      writeFileSync(file, '')
    })
    assert.deepEqual(faults, [])
    assert.ok(readFileSync(path, 'utf8').includes('"e"'))
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })

  it('renames to a name that is not read says so', async (t) => {
    const { path, faults } = await meddled(t, (file) => renameSync(file, `${file}.bak`))
    assert.match(faults.join(), /under which it is not found/)
    assert.equal((await verifyAudit({ path })).status, 'gap')
    renameSync(`${path}.bak`, `${path}.1`)
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })

  it('copies and truncates says so, and verifies if nothing was lost', async (t) => {
    const { path, faults } = await meddled(t, (file) => {
      copyFileSync(file, `${file}.1`)
      truncateSync(file)
    })
    assert.match(faults.join(), /another program cut .*copytruncate/)
    assert.equal((await verifyAudit({ path })).status, 'ok')
  })

  it('copies and truncates late shows the lost records', async (t) => {
    const { path, faults } = await meddled(t, async (file, audit) => {
      copyFileSync(file, `${file}.1`)
      await write(audit, 'lost')
      truncateSync(file)
    })
    assert.match(faults.join(), /records may be lost/)
    const { status, findings } = await verifyAudit({ path })
    assert.deepEqual([status, findings.map(({ kind }) => kind)], ['gap', ['missing']])
  })

  it('cuts in the middle of a record shows that', async (t) => {
    const { path, faults } = await meddled(t, (file) => truncateSync(file, 100))
    assert.match(faults.join(), /records may be lost/)
    const { status, findings } = await verifyAudit({ path })
    assert.deepEqual([status, findings.map(({ kind }) => kind)], ['tampered', ['unreadable', 'missing']])
  })

  it('removes says so and shows the lost records', async (t) => {
    const { path, faults } = await meddled(t, (file) => rmSync(file))
    assert.match(faults.join(), /another program removed/)
    assert.equal((await verifyAudit({ path })).status, 'gap')
  })

  it('replaces goes on in its own file, and says so', async (t) => {
    const { path, faults } = await meddled(t, (file) => {
      renameSync(file, `${file}.1`)
      writeFileSync(file, 'something else\n')
    })
    assert.match(faults.join(), /put a file in the place of/)
    assert.equal(readFileSync(path, 'utf8'), 'something else\n')
    assert.ok(readFileSync(`${path}.1`, 'utf8').includes('"e"'))
  })

  it('whose oldest closed file is removed by hand shows that', async (t) => {
    const { path } = await meddled(t, () => {})
    rmSync(join(dirname(path), closedOf(path)[0] ?? basename(path)))
    assert.equal((await verifyAudit({ path })).status, 'gap')
    assert.ok((await readAll(openJsonlAudit({ path, readOnly: true }))).length > 0)
  })
})
