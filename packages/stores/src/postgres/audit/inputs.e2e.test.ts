import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createGate } from '@toolgate/core'
import { type AuditRecord, createInputOpener, type SealedInputs } from '@toolgate/core/audit'
import { type WhatIf, whatIf, withInputs } from '@toolgate/change'
import { auditEntry } from '@toolgate/testing'
import { verifySharedAudit } from '@toolgate/stores/verify'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'
import { killAfterLines } from '../../testing/kill-after-lines.ts'
import { scratchFolder } from '../../testing/scratch-folder.ts'
import type { SharedAudit } from './open-audit.ts'

const WRITER = fileURLToPath(new URL('../../testing/disk-writer.ts', import.meta.url))
const HOUR_MS = 3_600_000
const key = randomBytes(32).toString('hex')
const inputs: SealedInputs = { keep: 'sealed', key, keepForMs: 24 * HOUR_MS }
const open = createInputOpener({ key })
const MARK = 'marker-90be44'

const echo = { execute: () => 'done' }
const policyWith = (input: string) => ({
  name: 'base',
  allow: ['*' as const],
  deny: [{ match: 'echo' as const, input }],
})

/** Makes three calls. */
async function callThrice(audit: SharedAudit): Promise<void> {
  const gate = createGate({ tools: { echo }, audit, policy: policyWith("input.to == 'b'") })
  const view = await gate.view({ user: 'vera' })
  for (const to of ['a', 'b', 'c']) await view.call({ tool: 'echo', input: { to, text: `${MARK} ${to}` } })
  await audit.flush()
}

async function ask(audit: SharedAudit, input: string, known: object = {}): Promise<WhatIf> {
  const gate = createGate({ tools: { echo } })
  const catalog = [...gate.catalog.snapshot()]
  const before = { catalog, policy: policyWith("input.to == 'b'") }
  const after = { catalog, policy: policyWith(input) }
  const found = await whatIf({ before, after, records: audit.exportRecords(), hashOf: audit.hashText, ...known })
  await gate.close()
  return found
}

async function boxed(audit: SharedAudit) {
  const records = (await Array.fromAsync(audit.exportRecords())).filter(({ input_box: box }) => box !== undefined)
  const boxes = await audit.inputBoxes(records)
  return records.map((record, i): readonly [AuditRecord, string | undefined] => [record, boxes[i]])
}

async function opened(audit: SharedAudit): Promise<readonly string[]> {
  return (await boxed(audit)).map(([record, box]) => {
    const found = box === undefined ? undefined : open(record, box)
    return found?.status === 'opened' ? found.text : (found?.status ?? 'gone')
  })
}

withBinaries(['postgres', 'initdb'], (paths) => {
  for (const durable of ['shared', 'disk'] as const)
    describe(`inputs in the audit that replicas share, durable: ${durable}`, () => {
      const postgres = ownPostgres(paths)

      async function openWith(t: TestContext, options: object) {
        const stores = await postgres.open(t)
        const disk = durable === 'disk' ? { disk: scratchFolder(t) } : {}
        return { stores, audit: await stores.openAudit({ replica: 'a', ...disk, ...options }) }
      }

      it('as facts, let a change of a rule about inputs be judged', async (t) => {
        await postgres.empty()
        const { audit } = await openWith(t, { inputs: 'facts' })
        await callThrice(audit)
        const found = await ask(audit, "input.to == 'c'")
        assert.deepEqual([found.calls, found.changed, found.unknown], [3, 2, 0])
        assert.equal((await ask(audit, "input.text.endsWith('a')")).unknown, 3)
      })

      it('sealed, are beside the records, open with the key, and let other operands be judged', async (t) => {
        await postgres.empty()
        const { stores, audit } = await openWith(t, { inputs, preview: false })
        await callThrice(audit)
        const texts = ['a', 'b', 'c'].map((to) => JSON.stringify({ to, text: `${MARK} ${to}` }))
        assert.deepEqual(await opened(audit), texts)
        const read = { ...audit, inputBoxes: stores.auditReader.inputBoxes }
        assert.deepEqual(await opened(read), texts)
        const dumped = JSON.stringify([
          await postgres.run('SELECT * FROM toolgate.audit'),
          await postgres.run('SELECT * FROM toolgate.audit_inputs'),
        ])
        assert.doesNotMatch(dumped, new RegExp(`${MARK}|${key}`))
        const input = "input.text.endsWith('a')"
        const known = await ask(audit, input, withInputs(audit.exportRecords(), audit, open))
        assert.deepEqual([known.calls, known.changed, known.unknown], [3, 2, 0])
        assert.equal((await ask(audit, input)).unknown, 3)
        const none = createInputOpener({ key: randomBytes(32) })
        assert.equal((await ask(audit, input, withInputs(audit.exportRecords(), audit, none))).unknown, 3)
        await audit.sign()
        const verdict = await stores.verifyAudit()
        assert.deepEqual([verdict.status, verdict.inputs], ['ok', { present: 3, gone: 0, missing: 0, altered: 0 }])
      })

      it('sealed, go by their own retention, which a record of any replica says', async (t) => {
        await postgres.empty()
        const { stores, audit } = await openWith(t, { inputs })
        const nowMs = Date.now()
        for (const [i, hours] of [40, 30, 0].entries())
          await audit.write(auditEntry({ tool_call_id: `c${i}`, wallMs: nowMs - hours * HOUR_MS, input: i }))
        await audit.flush()
        const other = await stores.openAudit({ replica: 'b', inputs })
        await other.prune()
        await audit.prune()
        assert.deepEqual(await opened(audit), ['gone', 'gone', '2'])
        const pruned = await audit.query({ event: 'inputs_pruned' })
        assert.ok(pruned.some(({ replica }) => replica === 'b'))
        await other.sign()
        await audit.sign()
        const verdict = await stores.verifyAudit()
        assert.deepEqual(verdict.findings, [])
        assert.deepEqual(verdict.inputs, { present: 1, gone: 2, missing: 0, altered: 0 })
      })

      it('sealed, are found altered, swapped and missing', async (t) => {
        await postgres.empty()
        const { stores, audit } = await openWith(t, { inputs })
        for (const input of ['a', 'b', 'c', 'd']) await audit.write(auditEntry({ tool_call_id: input, input }))
        await audit.flush()
        await audit.sign()
        const [a, b, c, d] = (await postgres.run('SELECT seq FROM toolgate.audit_inputs ORDER BY seq')).map(({ seq }) =>
          Number(seq),
        )
        await postgres.run(`UPDATE toolgate.audit_inputs AS mine SET box = other.box FROM toolgate.audit_inputs AS other
          WHERE (mine.seq, other.seq) IN ((${a}, ${b}), (${b}, ${a}))`)
        await postgres.run(`UPDATE toolgate.audit_inputs SET box = left(box, -1) WHERE seq = ${c}`)
        await postgres.run(`DELETE FROM toolgate.audit_inputs WHERE seq = ${d}`)
        assert.deepEqual(await opened(audit), ['altered', 'altered', 'altered', 'gone'])
        const verdict = await verifySharedAudit(stores.auditSource)
        assert.equal(verdict.status, 'tampered')
        assert.deepEqual(verdict.inputs, { present: 0, gone: 0, missing: 1, altered: 3 })
        assert.deepEqual(
          verdict.findings.map(({ kind, seq }) => [kind, seq]),
          [
            ['edited', a],
            ['edited', b],
            ['edited', c],
            ['missing', d],
          ],
        )
      })
    })

  describe('sealed inputs on the disk of a replica that stops', () => {
    const postgres = ownPostgres(paths)

    it('are shipped with the records that wait, and nothing stays on the disk', async (t) => {
      const stores = await postgres.open(t)
      const disk = scratchFolder(t)
      const audit = await stores.openAudit({ replica: 'a', disk, inputs })
      const calls = Array.from({ length: 3000 }, (_, i) => auditEntry({ tool_call_id: `c${i}`, input: { i } }))
      await Promise.all(calls.map((call) => audit.write(call)))
      await audit.close()
      assert.deepEqual(
        readdirSync(disk).filter((name) => name.includes('.jsonl')),
        [],
      )
      assert.deepEqual((await stores.verifyAudit()).inputs, { present: 3000, gone: 0, missing: 0, altered: 0 })
    })
  })

  describe('sealed inputs that a killed replica has left on its disk', () => {
    const postgres = ownPostgres(paths)

    it('are shipped with their records', async (t) => {
      await postgres.empty()
      const disk = scratchFolder(t)
      const stores = await postgres.open(t)
      const args = ['--conditions=toolgate-source', WRITER, postgres.url, disk, 'killed', key]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      child.stdout.setEncoding('utf8')
      killAfterLines(child, 200)
      await once(child, 'close')
      const audit = await stores.openAudit({ replica: 'r', disk, inputs })
      const found = await boxed(audit)
      assert.ok(found.length >= 200)
      for (const [record, box] of found)
        assert.deepEqual(open(record, box ?? ''), {
          status: 'opened',
          text: JSON.stringify({ id: record.tool_call_id }),
        })
      await audit.close()
      const { inputs: verified } = await stores.verifyAudit()
      assert.deepEqual(verified, { present: found.length, gone: 0, missing: 0, altered: 0 })
    })
  })
})
