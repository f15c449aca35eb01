import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { killAfterLines, timeFor } from './testing/kill-after-lines.ts'
import { FORMATS } from './testing/open-any.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const PRUNER = fileURLToPath(new URL('testing/pruner.ts', import.meta.url))
const KILLS = 6

for (const format of FORMATS) {
  describe(`retention of an audit in ${format}, in a process that is killed`, () => {
    it('leaves an audit that verifies, and goes on', timeFor(KILLS), async (t) => {
      const path = join(scratchFolder(t), 'audit')
      let firstSeq = 0
      for (let i = 0; i < KILLS; i++) {
        const child = spawn(process.execPath, ['--conditions=toolgate-source', PRUNER, format, path], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        child.stdout.setEncoding('utf8')
        killAfterLines(child, randomInt(2, 5))
        const [, signal] = await new Promise<[unknown, unknown]>((resolve) =>
          child.once('close', (code, by) => resolve([code, by])),
        )
        assert.equal(signal, 'SIGKILL', 'it worked until it was killed')
        const verdict = await verifyAudit({ path, mustBeSigned: true })
        assert.deepEqual(
          verdict.findings.filter(({ kind }) => kind !== 'torn'),
          [],
        )
        assert.ok(verdict.firstSeq >= firstSeq && verdict.pruned !== undefined)
        firstSeq = verdict.firstSeq
      }
      assert.ok(firstSeq > KILLS * 15)
    })
  })
}
