import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { checkPage, enter } from './browser.ts'
import { keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('the evidence of the audit in the console', (stage) => {
  it('shows on the Live page that the checkpoints are missing', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-evidence-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const gateway = await keepGateway(stage, {
      audit: { store: 'sqlite', mode: 'batched', path: join(folder, 'audit.db') },
    })
    rmSync(join(folder, 'checkpoints'), { recursive: true })
    const { page } = await stage.open()
    await enter(page, `${gateway.url}/#/live`)
    await page.getByText('The audit is not fully proven').waitFor()
    await page.getByText(/were removed while the audit was open/).waitFor()
    await checkPage(page, 'the page of records')
  })
})
