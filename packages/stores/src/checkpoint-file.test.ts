import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, before, describe, it, mock, type TestContext } from 'node:test'
import {
  type AuditVerdict,
  checkGrowthProof,
  createNoteSigner,
  createNoteVerifier,
  newSigningKey,
  openNote,
} from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import type { CheckpointOptions } from './audit-options.ts'
import { keysIn, openCheckpointFile, publicKeysOf } from './checkpoint-file.ts'
import { type Checkpoint, formatCheckpoint, parseCheckpoint, treeAfter } from './checkpoint-lines.ts'
import { checkpointsPath, privateKeyOf } from './evidence.ts'
import { openJsonlAudit } from './jsonl.ts'
import { extendLog } from './shared-audit/source.ts'
import { proveCall } from './testing/prove-call.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { proveGrowth, verifyAudit, withAuditFile } from './verify.ts'

const COUNT = 5
const textOf = (path: string): string => readFileSync(checkpointsPath(path), 'utf8')
const linesOf = (path: string): readonly string[] => textOf(path).split('\n').slice(0, -1)
const checkpointsOf = (path: string): Checkpoint[] => linesOf(path).map((line) => parseCheckpoint(line))
const toText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')
const keysOf = (path: string): readonly string[] => keysIn(readFileSync(publicKeysOf(checkpointsPath(path)), 'utf8'))

/** Opens an audit, records a call and closes it: a checkpoint signs all of it. */
async function session(path: string, id: string, checkpoints: CheckpointOptions = {}): Promise<void> {
  const audit = openJsonlAudit({ path, checkpoints })
  await audit.write(auditEntry({ event: 'tool_result', tool_call_id: id }))
  await audit.close()
}

/** An audit of some sessions, with a checkpoint each. */
async function sessions(t: TestContext, count = COUNT): Promise<string> {
  const path = join(scratchFolder(t), 'audit')
  for (let i = 1; i <= count; i++) await session(path, `c${i}`)
  return path
}

function kindsOf({ findings }: AuditVerdict): readonly unknown[] {
  return findings.map(({ kind, checkpoint }) => [kind, checkpoint])
}

describe('the checkpoints of an audit in a file', () => {
  // Only the end of a session makes a checkpoint, however long the session takes.
  before(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }))
  after(() => mock.timers.reset())

  it('are a log whose notes other programs can read, and each of which extends the one before', async (t) => {
    const path = await sessions(t)
    const keys = keysOf(path).map((key) => createNoteVerifier(key))
    const checkpoints = checkpointsOf(path)
    assert.deepEqual(
      checkpoints.map(({ note }) => openNote(note, keys)?.size),
      [1, 2, 3, 4, 5],
    )
    assert.equal(toText(checkpoints.map(formatCheckpoint)), textOf(path))
    for (const { note } of checkpoints) {
      const old = openNote(note, keys) ?? assert.fail()
      const proof = await withAuditFile({ path }, (source) => proveGrowth(source, note))
      assert.equal(checkGrowthProof(proof, old, keys), undefined)
    }
  })

  it('keep the name of their log when the audit is renamed, unless it is given', async (t) => {
    const path = await sessions(t, 1)
    const [key] = keysOf(path)
    const renamed = `${path} of+May`
    renameSync(path, renamed)
    for (const end of ['', '.pub', '.key']) renameSync(checkpointsPath(path) + end, checkpointsPath(renamed) + end)
    await session(renamed, 'again')
    assert.deepEqual(keysOf(renamed), [key])
    const verifiers = [key ?? '']
    assert.equal((await verifyAudit({ path: renamed, verifiers })).status, 'ok')
    await session(renamed, 'named', { writer: 'here' })
    assert.match(keysOf(renamed)[1] ?? '', /^here\+/)
    assert.equal((await verifyAudit({ path: renamed })).status, 'ok')
    const fresh = join(scratchFolder(t), basename(renamed))
    await session(fresh, 'new')
    assert.match(keysOf(fresh)[0] ?? '', /^audit%20of%2BMay\+[\da-f]{8}\+/)
    assert.equal((await verifyAudit({ path: fresh, verifiers: keysOf(fresh) })).status, 'ok')
  })

  it('go on from the checkpoint of a process with another key', async (t) => {
    const path = await sessions(t, 1)
    const open = (key: string) => openCheckpointFile({ auditPath: path, nowMs: Date.now, key })
    const [old, young] = [open(readFileSync(privateKeyOf(checkpointsPath(path)), 'utf8')), open(newSigningKey())]
    t.after(() => [old, young].forEach((file) => file.close()))
    const { prunedSeq, ts, ...end } = old.last() ?? assert.fail()
    for (const file of [young, old, young]) file.append({ ...end, count: 0 })
    assert.deepEqual(
      checkpointsOf(path).map((one) => one.before.size),
      [0, 1, 2, 3],
    )
    assert.deepEqual([prunedSeq, ts.length], [undefined, 24])
    assert.doesNotMatch(String((await verifyAudit({ path })).findings.map(({ kind }) => kind)), /forged/)
  })

  it('lose what a crash left of one, and go on', async (t) => {
    const path = await sessions(t, 2)
    const whole = textOf(path)
    const last = linesOf(path).at(-1) ?? assert.fail()
    const begin = whole.slice(0, -last.length - 1)
    for (let at = 1; at < last.length; at += 23) {
      writeFileSync(checkpointsPath(path), begin + last.slice(0, at))
      const { status, checkpoints, findings } = await verifyAudit({ path })
      assert.deepEqual([status, checkpoints.count, findings], ['ok', 1, []], `${at} bytes`)
    }
    await session(path, 'more')
    const { status, checkpoints } = await verifyAudit({ path })
    assert.deepEqual([status, checkpoints.count, checkpointsOf(path).length], ['ok', 2, 2])
  })

  describe('show in verification', () => {
    const forger = createNoteSigner('audit', newSigningKey())
    const resigned = (checkpoint: Checkpoint): Checkpoint => {
      const tree = treeAfter(checkpoint) ?? assert.fail()
      return { ...checkpoint, note: forger.sign({ origin: 'audit', size: tree.size, root: tree.root() }) }
    }
    const edit = (all: readonly Checkpoint[], at: number, change: (one: Checkpoint) => Checkpoint) =>
      all.with(at, change(all[at] ?? assert.fail()))
    const leafEdited = (one: Checkpoint): Checkpoint => ({
      ...one,
      leaves: one.leaves.map((leaf) => leaf.replace('"ts":"2', '"ts":"3')),
    })
    const cases: readonly [string, (all: Checkpoint[]) => readonly Checkpoint[], readonly unknown[]][] = [
      ['an edited leaf', (all) => edit(all, 1, leafEdited), [['rewritten', 2]]],
      [
        'an edited signature',
        (all) => edit(all, 1, (one) => ({ ...one, note: one.note.replace(/.{9}\n$/, 'AAAAAAAA\n') })),
        [['forged', 2]],
      ],
      [
        'an edited size',
        (all) => edit(all, 4, (one) => ({ ...one, note: one.note.replace('\n5\n', '\n6\n') })),
        [['forged', 5]],
      ],
      ['another key', (all) => edit(all, 4, resigned), [['forged', 5]]],
      ['another key for all', (all) => all.map(resigned), [1, 2, 3, 4, 5].map((n) => ['forged', n])],
      ['a forged leaf with another key', (all) => edit(all, 4, leafEdited), [['rewritten', 5]]],
      ['one that was removed', (all) => all.toSpliced(1, 1), [['forged', 2]]],
      ['a beginning that was removed', (all) => all.slice(2), [['forged', 1]]],
      ['all but the last that were removed', (all) => all.slice(4), [['forged', 1]]],
      [
        'two that changed places',
        ([a, b, ...all]) => [b, a, ...all].filter((one) => one !== undefined),
        [['forged', 1]],
      ],
      ['one that is there twice', (all) => [...all.slice(0, 2), ...all.slice(1)], [['forged', 3]]],
    ]
    for (const [what, change, findings] of cases) {
      it(what, async (t) => {
        const path = await sessions(t)
        writeFileSync(checkpointsPath(path), toText(change(checkpointsOf(path)).map(formatCheckpoint)))
        const verdict = await verifyAudit({ path })
        assert.equal(verdict.status, 'tampered', JSON.stringify(verdict.findings))
        for (const finding of findings) assert.deepEqual(kindsOf(verdict).find(isEqual(finding)), finding)
      })
    }

    it('lines that are none, wherever they are', async (t) => {
      const path = await sessions(t, 2)
      const lines = linesOf(path)
      for (let at = 0; at <= lines.length; at++)
        for (const line of ['{}', 'nonsense', '', ` ${lines[at]}`, `${lines[at]} `]) {
          writeFileSync(checkpointsPath(path), toText(lines.toSpliced(at, 0, line)))
          assert.deepEqual(kindsOf(await verifyAudit({ path })), [['forged', at + 1]], `${line} at ${at}`)
        }
    })

    it('a last one that something else replaced', async (t) => {
      const path = await sessions(t)
      writeFileSync(checkpointsPath(path), toText([...linesOf(path).slice(0, -1), '{}']))
      assert.deepEqual(kindsOf(await verifyAudit({ path })), [['forged', 5]])
    })

    it('forever one that was forged, which the writer does not sign', async (t) => {
      const path = await sessions(t, 2)
      const last = checkpointsOf(path).at(-1) ?? assert.fail()
      const end = treeAfter(last) ?? assert.fail()
      const tree = extendLog(end, last.leaves)
      const note = forger.sign({ origin: 'audit', size: tree.size, root: tree.root() })
      appendFileSync(checkpointsPath(path), toText([formatCheckpoint({ ...last, before: end, note })]))
      await session(path, 'later')
      const { status, findings, checkpoints, lastSeq } = await verifyAudit({ path })
      assert.deepEqual([status, findings.map(({ kind }) => kind)], ['tampered', ['forged']])
      assert.equal(checkpoints.lastSeq, lastSeq, 'all records are signed')
    })

    it('a flood of forged ones, behind which the writer still extends its own', async (t) => {
      const path = await sessions(t, 2)
      const audit = openJsonlAudit({ path, checkpoints: {} })
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'flooded' }))
      appendFileSync(checkpointsPath(path), '{}\n'.repeat(150))
      await audit.close()
      const keys = keysOf(path).map((key) => createNoteVerifier(key))
      const newestSize = () => openNote(checkpointsOf(path).at(-1)?.note ?? '', keys)?.size
      assert.equal(newestSize(), 3)
      appendFileSync(checkpointsPath(path), '{}\n'.repeat(150))
      await session(path, 'after a restart')
      assert.equal(newestSize(), 4)
      assert.equal((await verifyAudit({ path })).status, 'tampered')
    })

    it('their keys, where others are trusted', async (t) => {
      const path = await sessions(t, 2)
      const verdict = await verifyAudit({ path, verifiers: [forger.verifierKey] })
      assert.deepEqual([verdict.status, verdict.checkpoints.count], ['tampered', 0])
      assert.match(verdict.findings[0]?.text ?? '', /Checkpoint 1 is not signed by a trusted key/)
    })
  })

  it('prove nothing of an audit that was changed', async (t) => {
    const path = await sessions(t)
    assert.equal((await proveCall('c2', path)).proofs.length, 1)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace('"c2"', '"cx"'))
    await assert.rejects(proveCall('cx', path), { code: 'audit_invalid', message: /the record was edited/ })
    writeFileSync(path, text)
    writeFileSync(publicKeysOf(checkpointsPath(path)), `${createNoteSigner('audit', newSigningKey()).verifierKey}\n`)
    await assert.rejects(proveCall('c2', path), { code: 'audit_invalid', message: /no trusted key/ })
  })

  it('are not read when they are absent', async (t) => {
    const path = join(scratchFolder(t), 'audit')
    const audit = openJsonlAudit({ path, checkpoints: false })
    await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'a' }))
    await audit.close()
    assert.equal(existsSync(checkpointsPath(path)), false)
    assert.deepEqual(await proveCall('a', path), { proofs: [], unsigned: 1 })
    assert.ok(statSync(path).size > 0)
  })
})

function isEqual(wanted: unknown): (one: unknown) => boolean {
  return (one) => JSON.stringify(one) === JSON.stringify(wanted)
}
