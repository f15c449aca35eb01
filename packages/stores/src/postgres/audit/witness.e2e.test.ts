import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it, type TestContext } from 'node:test'
import { createMerkleTree, createNoteSigner, createWitnessVerifier, newSigningKey } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { readNotes } from '@toolgate/stores/verify'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { buildGo, type GoProgram } from '../../../../../tests/support/go.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'
import { scratchFolder } from '../../testing/scratch-folder.ts'
import type { WitnessOptions } from './witness.ts'

const PEM = newSigningKey()
const SIGNER = createNoteSigner('toolgate-audit', PEM)
/** No test waits for the timer: each signs when it wants. */
const EVERY_MS = 3_600_000

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the witness of the log of replicas', () => {
    const postgres = ownPostgres(paths)

    async function open(t: TestContext, witness: WitnessOptions, replica = 'a') {
      const stores = await postgres.open(t)
      const faults: unknown[] = []
      const onFault = (error: unknown) => void faults.push(error)
      const audit = await stores.openAudit({ replica, onFault, log: { key: PEM, everyMs: EVERY_MS, witness } })
      const problems = () => audit.evidence().problems.map(({ code, message }) => `${code}: ${message}`)
      return { stores, audit, faults, problems }
    }

    const write = async (audit: { write(entry: ReturnType<typeof auditEntry>): Promise<void> }) =>
      audit.write(auditEntry({ event: 'tool_result' }))

    /** Makes another log of the same leaves but one, which the key of the log has signed: what a bad signer would do. */
    async function fork(): Promise<void> {
      const leaves = await postgres.run('SELECT index, leaf FROM toolgate.audit_leaves ORDER BY index')
      const notes = await postgres.run('SELECT size FROM toolgate.audit_notes ORDER BY size')
      const sizes = new Set(notes.map(({ size }) => Number(size)))
      const tree = createMerkleTree()
      for (const { leaf } of leaves) {
        const text = tree.size === 1 ? String(leaf).replace(/"ts":"20../, '"ts":"2031') : String(leaf)
        await postgres.run(`UPDATE toolgate.audit_leaves SET leaf = '${text}' WHERE index = ${tree.size}`)
        tree.add(Buffer.from(text).toString('hex'))
        if (!sizes.has(tree.size)) continue
        const note = SIGNER.sign({ origin: 'toolgate-audit', size: tree.size, root: tree.root() })
        await postgres.run(`UPDATE toolgate.audit_notes SET note = '${note}' WHERE size = ${tree.size}`)
      }
      await postgres.run(`UPDATE toolgate.audit_log SET frontier = '{${tree.frontier.join(',')}}'`)
    }

    it('is a file to which each replica appends every note, and goes on after a restart', async (t) => {
      await postgres.empty()
      const files = ['a', 'b'].map((name) => join(scratchFolder(t), `${name}.notes`))
      const [first, second] = [await open(t, { file: files[0] ?? '' }), await open(t, { file: files[1] ?? '' }, 'b')]
      for (let i = 0; i < 3; i++) {
        await write(first.audit)
        await first.audit.sign()
        await second.audit.sign()
      }
      await second.audit.close()
      const size = statSync(files[1] ?? '').size
      await first.audit.sign()
      const again = await open(t, { file: files[1] ?? '' }, 'b')
      await again.audit.sign()
      assert.ok(statSync(files[1] ?? '').size > size)
      const kept = await postgres.run('SELECT note FROM toolgate.audit_notes ORDER BY size')
      assert.ok(kept.length >= 4)
      for (const file of files) {
        await first.audit.sign()
        await again.audit.sign()
        const notes = await Array.fromAsync(readNotes(file))
        assert.deepEqual(
          notes.slice(0, kept.length),
          kept.map(({ note }) => note),
        )
        assert.equal(new Set(notes).size, notes.length)
        const verdict = await first.stores.verifyAudit({ witness: readNotes(file) })
        assert.deepEqual([verdict.status, verdict.findings], ['ok', []])
      }
      assert.deepEqual([first.problems(), second.problems(), again.problems()], [[], [], []])
    })

    it('leaves out the half note of a crash, and has it whole after it', async (t) => {
      await postgres.empty()
      const file = join(scratchFolder(t), 'notes')
      const { audit } = await open(t, { file })
      await audit.sign()
      await audit.close()
      const whole = readFileSync(file, 'utf8')
      const notes = (await Array.fromAsync(readNotes(file))).length
      const last =
        Buffer.byteLength(whole.slice(0, -1)) - Buffer.byteLength(whole.trimEnd().split('\n\n').slice(-2).join('\n\n'))
      for (let cut = last; cut < Buffer.byteLength(whole) - 1; cut += 9) {
        writeFileSync(file, whole)
        truncateSync(file, cut)
        const again = await open(t, { file })
        await again.audit.sign()
        assert.deepEqual(again.problems(), [], `cut at ${cut}`)
        const read = await Array.fromAsync(readNotes(file))
        assert.ok(read.length > notes)
        const verdict = await again.stores.verifyAudit({ witness: readNotes(file) })
        assert.deepEqual([verdict.status, verdict.findings], ['ok', []], `cut at ${cut}`)
        await again.audit.close()
        writeFileSync(file, whole)
      }
    })

    it('finds a fork by the signer, and where; nothing else does', async (t) => {
      await postgres.empty()
      const file = join(scratchFolder(t), 'notes')
      const { audit, stores, problems, faults } = await open(t, { file })
      for (let i = 0; i < 3; i++) {
        await write(audit)
        await audit.sign()
      }
      await fork()
      assert.equal((await stores.verifyAudit({ verifiers: [SIGNER.verifierKey] })).status, 'ok')
      const verdict = await stores.verifyAudit({ witness: readNotes(file) })
      assert.equal(verdict.status, 'tampered')
      assert.deepEqual(
        verdict.findings.map(({ kind, checkpoint }) => [kind, checkpoint]),
        [['forked', 1]],
      )
      await audit.sign()
      // It goes on with the other log, and still says so.
      await write(audit)
      await audit.sign()
      assert.match(
        problems()[0] ?? '',
        /^witness_failing: .* the log is not the one that the witness saw at \d+ leaves/,
      )
      assert.equal(faults.length, 1)
    })

    it('is not given what the key of the log has not signed', async (t) => {
      await postgres.empty()
      const file = join(scratchFolder(t), 'notes')
      const { audit, problems } = await open(t, { file })
      await audit.sign()
      const had = (await Array.fromAsync(readNotes(file))).length
      const forged = createNoteSigner('toolgate-audit', newSigningKey())
      await postgres.run(
        `INSERT INTO toolgate.audit_notes VALUES (900000, '${forged.sign({ origin: 'toolgate-audit', size: 900_000, root: 'ab'.repeat(32) })}')`,
      )
      await audit.sign()
      assert.match(problems()[0] ?? '', /checkpoints that are not signed with its key/)
      await postgres.run('DELETE FROM toolgate.audit_notes WHERE size = 900000')
      await audit.sign()
      assert.deepEqual(problems(), [])
      assert.equal((await Array.fromAsync(readNotes(file))).length, had + 2)
    })

    it('is refused at the start if it cannot be written, or its key is missing', async (t) => {
      const folder = scratchFolder(t)
      appendFileSync(join(folder, 'file'), '')
      await assert.rejects(
        open(t, { file: join(folder, 'file', 'notes') }),
        /the file of the witness, .* cannot be written/,
      )
      await assert.rejects(open(t, { url: 'http://127.0.0.1:1' }), /needs both its url and its key/)
      await assert.rejects(open(t, { url: 'http://127.0.0.1:1', key: SIGNER.verifierKey }), /for cosignatures/)
    })

    withBinaries(['go'], ({ go }) => {
      describe('over HTTP, with a witness in Go', () => {
        let program: GoProgram | undefined
        before(() => {
          program = buildGo(go, 'witness')
        })
        after(() => program?.remove())

        async function startWitness(t: TestContext): Promise<{ readonly url: string; readonly key: string }> {
          const child = spawn(program?.file ?? '', [SIGNER.verifierKey], { stdio: ['ignore', 'pipe', 'inherit'] })
          t.after(() => child.kill())
          const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
          const [url = '', key = ''] = line.split(' ')
          return { url, key }
        }

        it('has each note cosigned, also by a replica that takes over, and by one that the witness does not know', async (t) => {
          await postgres.empty()
          const { key, url } = await startWitness(t)
          const a = await open(t, { url, key })
          for (let i = 0; i < 5; i++) {
            await write(a.audit)
            await a.audit.sign()
          }
          const b = await open(t, { url, key }, 'b')
          await a.audit.close()
          await b.audit.sign()
          assert.deepEqual([a.problems(), b.problems()], [[], []])
          const notes = await postgres.run('SELECT note FROM toolgate.audit_notes ORDER BY size')
          const cosigned = notes.filter(({ note }) => createWitnessVerifier(key).cosignatureOf(String(note)))
          assert.deepEqual([notes.length, cosigned.length], [7, 7])
          assert.equal((await b.stores.verifyAudit()).status, 'ok')
          const other = await startWitness(t)
          const c = await open(t, other, 'c')
          await b.audit.close()
          await c.audit.sign()
          assert.deepEqual(c.problems(), [])
        })

        it('is refused a fork, and the replica says so', async (t) => {
          await postgres.empty()
          const witness = await startWitness(t)
          const { audit, problems } = await open(t, witness)
          for (let i = 0; i < 3; i++) await audit.sign()
          await fork()
          const again = await open(t, witness, 'b')
          await audit.close()
          assert.match(
            problems()[0] ?? '',
            /witness refuses the checkpoint of \d+ leaves, with 422: the log does not go on/,
          )
          await again.audit.sign()
          assert.match(again.problems()[0] ?? '', /with 422/)
        })

        it('names what a witness answers that is none', async (t) => {
          await postgres.empty()
          const { key } = await startWitness(t)
          const answers: readonly [number, string, RegExp][] = [
            [200, '\u2014 witness.test/w1 AAAA\n', /not signed with its key/],
            [200, 'x'.repeat(100_000), /too long/],
            [403, '', /with 403: it does not trust the key/],
            [404, '', /with 404: it does not know the log/],
            [409, '3\n', /with 409|does not take the size/],
            [409, '99999\n', /cut back to \d+ leaves: the witness saw 99999/],
            [500, 'broken', /with 500/],
          ]
          let [status, text]: [number, string] = [200, '']
          const server = createServer((_, response) => void response.writeHead(status).end(text))
          server.listen(0, '127.0.0.1')
          await once(server, 'listening')
          t.after(() => server.close())
          const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
          const { audit, problems } = await open(t, { url, key })
          for (const [givenStatus, givenText, expected] of answers) {
            ;[status, text] = [givenStatus, givenText]
            await audit.sign()
            assert.match(problems()[0] ?? '', expected)
          }
          server.closeAllConnections()
          server.close()
          await audit.sign()
          assert.match(problems()[0] ?? '', /^witness_failing/)
        })
      })
    })
  })
})
