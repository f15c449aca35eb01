import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { auditEntry } from '@toolgate/testing'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { checkpointsPath, findPlaceProblems, privateKeyOf } from './evidence.ts'
import { openAny } from './testing/open-any.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const modeOf = (path: string): number => statSync(path).mode & 0o777
const codesOf = (audit: FileAudit): readonly string[] => audit.evidence().problems.map(({ code }) => code)

for (const format of ['sqlite', 'jsonl'] as const) {
  const open = (path: string, options: Partial<AuditFileOptions> = {}): FileAudit =>
    openAny(format, { path, ...options })
  /** Opens an audit, writes a record and closes it: its checkpoints sign all of it. */
  const session = async (path: string, options: Partial<AuditFileOptions> = {}): Promise<void> => {
    const audit = open(path, options)
    await audit.write(auditEntry({ event: 'tool_result' }))
    await audit.close()
  }
  const scratch = (t: TestContext): string => join(scratchFolder(t), 'audit')

  describe(`the checkpoints of an audit in ${format}`, () => {
    it('live with their key in a folder of their own, for their owner only', async (t) => {
      const path = scratch(t)
      await session(path)
      const checkpoints = checkpointsPath(path)
      assert.equal(checkpoints, join(dirname(path), 'checkpoints', 'audit.checkpoints'))
      assert.deepEqual([checkpoints, privateKeyOf(checkpoints)].map(modeOf), [0o600, 0o600])
      assert.equal(modeOf(dirname(checkpoints)), 0o700)
      assert.deepEqual(findPlaceProblems(path), [])
    })

    it('stay where an earlier version left them, and keep vouching', async (t) => {
      const path = scratch(t)
      const earlier = `${path}.checkpoints`
      await session(path, { checkpoints: { path: earlier } })
      const key = readFileSync(privateKeyOf(earlier), 'utf8')
      await session(path)
      assert.equal(checkpointsPath(path), earlier)
      assert.equal(readFileSync(privateKeyOf(earlier), 'utf8'), key)
      assert.equal(existsSync(join(dirname(path), 'checkpoints')), false)
      const { status, checkpoints, lastSeq } = await verifyAudit({ path })
      assert.deepEqual([status, checkpoints.lastSeq], ['ok', lastSeq])
      assert.deepEqual(
        findPlaceProblems(path).map(({ code }) => code),
        ['checkpoints_together', 'key_together'],
      )
    })

    it('are reported when they can no longer be made, because their file was removed', async (t) => {
      const path = scratch(t)
      const faults: unknown[] = []
      const audit = open(path, { checkpoints: { everyMs: 10 }, onFault: (error) => void faults.push(error) })
      while (audit.evidence().checkpoints?.signedSeq === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      assert.deepEqual(codesOf(audit), [])
      rmSync(checkpointsPath(path))
      while (faults.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      assert.match(String(faults[0]), /were removed or replaced while the audit was open/)
      assert.deepEqual(codesOf(audit), ['checkpoints_missing', 'checkpoints_failing'])
      await audit.close()
      assert.equal((await verifyAudit({ path })).status, 'unsigned')
    })

    it('are reported at the next opening when they are gone', async (t) => {
      const path = scratch(t)
      await session(path)
      await session(path)
      rmSync(dirname(checkpointsPath(path)), { recursive: true })
      const faults: unknown[] = []
      const audit = open(path, { onFault: (error) => void faults.push(error) })
      assert.match(String(faults[0]), /checkpoints signed up to record 3/)
      assert.deepEqual(codesOf(audit), ['checkpoints_missing'])
      await audit.close()
    })
  })

  describe(`verifyAudit of an audit in ${format}`, () => {
    /** What is done to the checkpoints of two sessions, the second of which has signed six records. */
    const losses: readonly (readonly [what: string, lose: (checkpoints: string, path: string) => unknown])[] = [
      ['removed', (checkpoints) => rmSync(checkpoints)],
      ['removed with their folder', (checkpoints) => rmSync(dirname(checkpoints), { recursive: true })],
      ['moved away', (checkpoints) => renameSync(checkpoints, `${checkpoints}.old`)],
      ['emptied', (checkpoints) => truncateSync(checkpoints)],
      ['left without their public key', (checkpoints) => rmSync(`${checkpoints}.pub`)],
      [
        'removed before a third session made others',
        async (checkpoints, path) => {
          rmSync(checkpoints)
          await session(path)
        },
      ],
      [
        'removed with the key before a third session made others',
        async (checkpoints, path) => {
          rmSync(dirname(checkpoints), { recursive: true })
          await session(path)
        },
      ],
    ]
    for (const [what, lose] of losses) {
      it(`does not say ok when the checkpoints were ${what}, with or without a configuration`, async (t) => {
        const path = scratch(t)
        await session(path)
        await session(path)
        const checkpoints = checkpointsPath(path)
        assert.equal((await verifyAudit({ path, mustBeSigned: true })).status, 'ok')
        await lose(checkpoints, path)
        assert.equal((await verifyAudit({ path })).status, 'unsigned')
        assert.equal((await verifyAudit({ path, checkpoints })).status, 'unsigned')
        assert.equal((await verifyAudit({ path, mustBeSigned: true })).status, 'unsigned')
      })
    }

    it('finds checkpoints that were cut back to before a later opening', async (t) => {
      const path = scratch(t)
      await session(path)
      const first = readFileSync(checkpointsPath(path), 'utf8')
      await session(path)
      await session(path)
      writeFileSync(checkpointsPath(path), first)
      const { status, findings } = await verifyAudit({ path })
      assert.equal(status, 'unsigned')
      assert.match(
        findings[0]?.text ?? '',
        /says that checkpoints signed up to record 6\. Those checkpoints are missing/,
      )
    })

    it('takes an audit that never had checkpoints as it is, unless it must have some', async (t) => {
      const path = scratch(t)
      await session(path, { checkpoints: false })
      assert.equal((await verifyAudit({ path })).status, 'ok')
      assert.equal((await verifyAudit({ path, mustBeSigned: true })).status, 'unsigned')
    })
  })
}

describe('findPlaceProblems', () => {
  it('names files in the folder of the audit, and a key that others can read', (t) => {
    const folder = scratchFolder(t)
    const [audit, elsewhere] = [join(folder, 'audit.db'), join(folder, 'elsewhere', 'a.checkpoints')]
    const codes = (options: Parameters<typeof findPlaceProblems>[1]): readonly string[] =>
      findPlaceProblems(audit, options).map(({ code }) => code)
    assert.deepEqual(codes({ path: elsewhere }), [])
    assert.deepEqual(codes({ path: elsewhere, keyFile: join(folder, 'key.pem') }), ['key_together'])
    assert.deepEqual(codes({ path: join(folder, 'a.checkpoints') }), ['checkpoints_together', 'key_together'])
    mkdirSync(dirname(elsewhere))
    writeFileSync(privateKeyOf(elsewhere), '', { mode: 0o640 })
    assert.deepEqual(codes({ path: elsewhere }), ['key_readable'])
  })
})
