import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startGateway } from '../../gateway/src/index.ts'
import { checkPage, logIn, setStage } from './browser.ts'
import { findChromium } from './chromium.ts'

const executablePath = findChromium()

if (executablePath !== undefined)
  describe('the evidence of the audit in the console', () => {
    it('shows on the Live page that the checkpoints are missing', async (t) => {
      const stage = await setStage(executablePath)
      t.after(() => stage.close())
      const folder = mkdtempSync(join(tmpdir(), 'toolgate-evidence-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const gateway = await startGateway(
        {
          file: '/test/toolgate.yaml',
          listen: { host: '127.0.0.1', port: 0 },
          servers: [],
          callers: [
            { keyHash: createHash('sha256').update('demo-console').digest(), for: 'console', caller: { user: 'ada' } },
          ],
          groups: [],
          policy: [{ allow: ['*'] }],
          limits: [],
          audit: { store: 'sqlite', mode: 'batched', path: join(folder, 'audit.db') },
        },
        { consoleDir: stage.consoleDir },
      )
      t.after(() => gateway.close())
      rmSync(join(folder, 'checkpoints'), { recursive: true })
      const { page, context, strayed } = await stage.open({})
      t.after(() => context.close())
      await page.goto(`${gateway.url}/#/live`)
      await logIn(page)
      await page.getByText('The audit is not fully proven').waitFor()
      await page.getByText(/were removed while the audit was open/).waitFor()
      await checkPage(page, 'the page of records')
      assert.deepEqual(strayed, [])
    })
  })
