import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { createGate } from '@toolgate/core'
import {
  createInputOpener,
  createMerkleTree,
  createNoteSigner,
  createSealer,
  newSigningKey,
  parseTreeHead,
} from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import {
  exportSharedAudit,
  openExportedAudit,
  proveRecords,
  readNotes,
  verifySharedAudit,
} from '@toolgate/stores/verify'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { tempFolder } from '../../../../tests/support/gateway.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

const PEM = newSigningKey()
const VERIFIERS = [createNoteSigner('toolgate-audit', PEM).verifierKey]

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('an exported audit of replicas', () => {
    const postgres = ownPostgres(paths)
    const folder = tempFolder()
    const whole = join(folder.path, 'whole')
    let copies = 0
    /** The number of the chain of replica b. */
    let b = 0

    before(async () => {
      const closing: (() => unknown)[] = []
      const stores = await postgres.open({ after: (work) => void closing.push(work) })
      const open = (replica: string) => stores.openAudit({ replica, log: { key: PEM } })
      const audits = [await open('a'), await open('b')]
      for (let i = 0; i < 30; i++) {
        // An agent may send line separators.
        const more = i === 3 ? { detail: 'first\u2028second\u2029third\rfourth' } : {}
        for (const audit of audits)
          await audit.write(auditEntry({ event: 'tool_result', tool_call_id: `${audit.chain.replica}-${i}`, ...more }))
        if (i % 10 === 9) await audits[0]?.sign()
      }
      await exportSharedAudit(stores.auditSource, whole)
      for (const work of closing) await work()
      b = (await openExportedAudit(whole).chains()).find(({ replica }) => replica === 'b')?.id ?? 0
    })
    after(() => folder.remove())

    /** Returns what is found in a copy of the export with one changed file. */
    async function verifyChanged(file: string, change: (text: string) => string | undefined) {
      const copy = join(folder.path, `copy-${copies++}`)
      cpSync(whole, copy, { recursive: true })
      const kept = readFileSync(join(copy, file), 'utf8')
      const text = change(kept)
      assert.notEqual(text, kept, 'it is changed')
      if (text === undefined) rmSync(join(copy, file))
      else writeFileSync(join(copy, file), text)
      return verifySharedAudit(openExportedAudit(copy), { verifiers: VERIFIERS })
    }

    it('verifies without a database, and proves records', async () => {
      const verdict = await verifySharedAudit(openExportedAudit(whole), { verifiers: VERIFIERS })
      assert.deepEqual([verdict.status, verdict.records, verdict.findings], ['ok', 62, []])
      assert.deepEqual(
        verdict.chains.map(({ replica, state, lastSeq, signedSeq }) => [replica, state, lastSeq, signedSeq]),
        [
          ['a', 'live', 31, 31],
          ['b', 'live', 31, 31],
        ],
      )
      const { proofs, unsigned } = await proveRecords(openExportedAudit(whole), { call: 'b-29' })
      assert.deepEqual([proofs.length, unsigned], [1, 0])
      await assert.rejects(proveRecords(openExportedAudit(whole), { place: 3 }), /name a call/)
    })

    it('trusts the given keys alone', async () => {
      const other = createNoteSigner('toolgate-audit', newSigningKey()).verifierKey
      const verdict = await verifySharedAudit(openExportedAudit(whole), { verifiers: [other] })
      assert.equal(verdict.status, 'tampered')
      assert.equal(verdict.findings[0]?.kind, 'forged')
    })

    const lines = (change: (all: string[]) => readonly string[]) => (text: string) =>
      `${change(text.trimEnd().split('\n')).join('\n')}\n`
    const swapped = ([...all]: string[]) => [...all.slice(0, 4), all[5] ?? '', all[4] ?? '', ...all.slice(6)]
    const cases: readonly [string, () => string, (text: string) => string | undefined, string, readonly unknown[]][] = [
      [
        'an edited record',
        () => `chain-${b}.jsonl`,
        lines((all) => all.with(4, (all[4] ?? '').replace('files:read_file', 'files:list_file'))),
        'tampered',
        ['edited', 'b', 5],
      ],
      ['a removed record', () => `chain-${b}.jsonl`, lines((all) => all.toSpliced(4, 1)), 'gap', ['missing', 'b', 5]],
      ['reordered records', () => `chain-${b}.jsonl`, lines(swapped), 'tampered', ['reordered', 'b', 5]],
      [
        'a record that is there twice',
        () => `chain-${b}.jsonl`,
        lines((all) => all.toSpliced(5, 0, all[4] ?? '')),
        'tampered',
        ['inserted', 'b', 5],
      ],
      [
        'a tail that was cut off',
        () => `chain-${b}.jsonl`,
        lines((all) => all.slice(0, 20)),
        'gap',
        ['truncated', 'b', 21],
      ],
      ['a chain without its records', () => `chain-${b}.jsonl`, () => undefined, 'gap', ['truncated', 'b', 1]],
      [
        'a chain that was removed',
        () => 'chains.jsonl',
        lines((all) => all.filter((line) => !line.includes('"replica":"b"'))),
        'gap',
        ['truncated', 'b', 1],
      ],
      [
        'a leaf that was edited',
        () => 'leaves.jsonl',
        (text) => text.replace('"live"', '"lost"'),
        'tampered',
        ['rewritten', undefined, undefined],
      ],
      [
        'a leaf that was removed',
        () => 'leaves.jsonl',
        lines((all) => all.toSpliced(2, 1)),
        'tampered',
        ['rewritten', undefined, undefined],
      ],
      [
        'leaves that were reordered',
        () => 'leaves.jsonl',
        lines(swapped),
        'tampered',
        ['rewritten', undefined, undefined],
      ],
      ['a cut log', () => 'leaves.jsonl', lines((all) => all.slice(0, -1)), 'gap', ['truncated', undefined, undefined]],
      [
        'a checkpoint that was edited',
        () => 'notes.txt',
        (text) => text.replace('toolgate', 'tollgate'),
        'tampered',
        ['forged', undefined, undefined],
      ],
      [
        'the newest checkpoint removed',
        () => 'notes.txt',
        (text) => text.slice(0, text.trimEnd().lastIndexOf('\n\ntoolgate') + 1),
        'gap',
        ['truncated', undefined, undefined],
      ],
      ['all checkpoints removed', () => 'notes.txt', () => '', 'gap', ['truncated', undefined, undefined]],
    ]
    for (const [what, file, change, status, finding] of cases)
      it(`shows ${what}, and where`, async () => {
        const verdict = await verifyChanged(file(), change)
        const found = verdict.findings.map(({ kind, replica, seq }) => [kind, replica, seq])
        assert.equal(verdict.status, status, JSON.stringify(verdict.findings))
        assert.ok(
          found.some((one) => JSON.stringify(one) === JSON.stringify(finding)),
          JSON.stringify(verdict.findings, undefined, 1),
        )
      })

    it('shows records of a chain that is there twice', async () => {
      const copy = join(folder.path, 'twice')
      cpSync(whole, copy, { recursive: true })
      const chains = readFileSync(join(copy, 'chains.jsonl'), 'utf8')
      const line = chains.split('\n').find((one) => one.includes('"replica":"b"')) ?? ''
      const twice = JSON.stringify({ ...JSON.parse(line), id: 99, seq: 1 })
      writeFileSync(join(copy, 'chains.jsonl'), `${chains}${twice}\n`)
      writeFileSync(join(copy, 'chain-99.jsonl'), `${createSealer({}).seal(auditEntry({ tool_call_id: 'forged' }))}\n`)
      const { findings } = await verifySharedAudit(openExportedAudit(copy), { verifiers: VERIFIERS })
      assert.deepEqual(
        findings.map(({ kind, replica }) => [kind, replica]),
        [['inserted', 'b']],
      )
    })

    it('shows a log that its signer wrote again, against the notes of a witness alone', async () => {
      const copy = join(folder.path, 'forked')
      cpSync(whole, copy, { recursive: true })
      const kept = (await Array.fromAsync(openExportedAudit(whole).notes())).flat().map(({ note }) => note)
      const forger = createNoteSigner('toolgate-audit', PEM)
      // The signer removes replica b from the log, and signs every checkpoint again.
      const leaves = readFileSync(join(copy, 'leaves.jsonl'), 'utf8').trimEnd().split('\n')
      const forged = leaves.filter((leaf) => !leaf.includes('"replica":"b"'))
      writeFileSync(join(copy, 'leaves.jsonl'), `${forged.join('\n')}\n`)
      const tree = createMerkleTree()
      const notes: string[] = []
      for (const leaf of forged) {
        tree.add(Buffer.from(leaf).toString('hex'))
        if (leaf.includes('"signed"'))
          notes.push(forger.sign({ origin: 'toolgate-audit', size: tree.size, root: tree.root() }))
      }
      writeFileSync(join(copy, 'notes.txt'), notes.join('\n'))
      const chains = readFileSync(join(copy, 'chains.jsonl'), 'utf8').split('\n')
      writeFileSync(join(copy, 'chains.jsonl'), chains.filter((line) => !line.includes('"replica":"b"')).join('\n'))
      const log = JSON.parse(readFileSync(join(copy, 'log.json'), 'utf8'))
      writeFileSync(join(copy, 'log.json'), JSON.stringify({ ...log, size: tree.size }))
      const verify = (witness?: readonly string[]) =>
        verifySharedAudit(openExportedAudit(copy), {
          verifiers: VERIFIERS,
          ...(witness && {
            witness: (async function* () {
              yield* witness
            })(),
          }),
        })
      assert.equal((await verify()).status, 'ok', 'nothing else shows it')
      const verdict = await verify(kept.slice(0, 1))
      assert.deepEqual(
        [verdict.status, verdict.findings.map(({ kind, checkpoint }) => [kind, checkpoint])],
        ['tampered', [['forked', 1]]],
      )
      assert.match(verdict.findings[0]?.text ?? '', /^Leaves 0 to 2 of the log are not those that the witness saw/)
      const cut = await verify(kept.slice(-1))
      assert.deepEqual(
        cut.findings.map(({ kind }) => kind),
        ['truncated'],
      )
      const untrusted = await verify([
        createNoteSigner('toolgate-audit', newSigningKey()).sign(parseTreeHead(kept[0] ?? '') ?? assert.fail()),
      ])
      assert.deepEqual(
        untrusted.findings.map(({ kind }) => kind),
        ['forged'],
      )
      assert.deepEqual(
        (await verify([])).findings.map(({ kind }) => kind),
        ['unsigned'],
      )
    })

    it('agrees with its own witness', async () => {
      const witness = join(whole, 'notes.txt')
      const verdict = await verifySharedAudit(openExportedAudit(whole), {
        verifiers: VERIFIERS,
        witness: readNotes(witness),
      })
      assert.deepEqual([verdict.status, verdict.witness], ['ok', { count: 3, size: verdict.checkpoints.size }])
    })

    it('is written to an empty folder only, and refused unless it is whole', async () => {
      await assert.rejects(exportSharedAudit(openExportedAudit(whole), whole), /is not empty/)
      const copy = join(folder.path, 'again')
      await exportSharedAudit(openExportedAudit(whole), copy)
      for (const name of readdirSync(whole))
        if (name !== 'log.json')
          assert.equal(readFileSync(join(copy, name), 'utf8'), readFileSync(join(whole, name), 'utf8'))
      for (const text of ['', '{}', '[]']) {
        writeFileSync(join(copy, 'log.json'), text)
        assert.throws(() => openExportedAudit(copy), { code: 'audit_invalid' })
      }
      assert.throws(() => openExportedAudit(join(folder.path, 'nowhere')), { code: 'audit_invalid' })
    })
  })

  describe('the sealed inputs of an exported audit', () => {
    const postgres = ownPostgres(paths)
    const folder = tempFolder()
    const whole = join(folder.path, 'whole')
    const key = randomBytes(32).toString('hex')
    const inputs = { keep: 'sealed', key } as const
    const MARK = 'marker-5bd0e1'
    /** The file of the chain that has inputs. */
    let chain = ''

    before(async () => {
      const closing: (() => unknown)[] = []
      const stores = await postgres.open({ after: (work) => void closing.push(work) })
      const audits = await Promise.all(
        ['a', 'b'].map((replica) => stores.openAudit({ replica, inputs, preview: false, log: { key: PEM } })),
      )
      const audit = audits[0] ?? assert.fail()
      const gate = createGate({
        tools: { echo: { execute: () => 'done' } },
        audit,
        policy: { allow: ['*'] },
      })
      const view = await gate.view({ user: 'vera' })
      for (const to of ['a', 'b', 'c']) await view.call({ tool: 'echo', input: { to, text: MARK } })
      await gate.close()
      await audit.flush()
      await audit.sign()
      assert.deepEqual((await exportSharedAudit(stores.auditSource, whole)).inputs, 3)
      for (const work of closing) await work()
      const a = (await openExportedAudit(whole).chains()).find(({ replica }) => replica === 'a')
      chain = join(whole, `chain-${a?.id}.jsonl`)
    })
    after(() => folder.remove())

    const verify = async (copy: string) => verifySharedAudit(openExportedAudit(copy), { verifiers: VERIFIERS })

    async function verifyWithout(change: (boxes: string) => void) {
      const copy = mkdtempSync(join(folder.path, 'copy-'))
      cpSync(whole, copy, { recursive: true })
      change(join(copy, `${basename(chain)}.inputs`))
      return verify(copy)
    }

    it('verify without the key, and are one file that can be read where nothing is written', async () => {
      const { status, inputs: found } = await verify(whole)
      assert.deepEqual([status, found], ['ok', { present: 3, gone: 0, missing: 0, altered: 0 }])
      const names = readdirSync(whole)
      assert.deepEqual(
        names.filter((name) => name.includes('.inputs')),
        [`${basename(chain)}.inputs`],
      )
      for (const name of names) assert.ok(!readFileSync(join(whole, name)).includes(MARK), name)
    })

    it('open with the key, from the file of their chain', async (t) => {
      const audit = openJsonlAudit({ path: chain, readOnly: true })
      t.after(() => audit.close())
      const records = await audit.query({ event: 'tool_call' })
      const boxes = await audit.inputBoxes(records)
      const open = createInputOpener({ key })
      assert.deepEqual(
        records.map((record, i) => open(record, boxes[i] ?? '')),
        ['c', 'b', 'a'].map((to) => ({ status: 'opened', text: JSON.stringify({ to, text: MARK }) })),
      )
    })

    it('are missed where they were removed, and found where they were changed', async () => {
      const gone = await verifyWithout((boxes) => rmSync(boxes))
      assert.deepEqual([gone.status, gone.inputs?.missing], ['gap', 3])
      const changed = await verifyWithout((boxes) => {
        const db = new DatabaseSync(boxes)
        db.exec('UPDATE input_boxes SET box = (SELECT max(box) FROM input_boxes)')
        db.close()
      })
      assert.deepEqual([changed.status, changed.inputs?.altered], ['tampered', 2])
    })
  })
})
