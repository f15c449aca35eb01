import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { RunningGateway } from '../../gateway/src/index.ts'
import { startRecordingServer } from '../../../tests/support/recording-server.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { enter, takePicture } from './browser.ts'
import { callAsViewer, keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('what a decision depends on, in the console', (stage) => {
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    const inputSchema = { type: 'object', properties: { amount: { type: 'number' } } }
    const upstream = await stage.keep(startRecordingServer([{ name: 'look' }, { name: 'pay', inputSchema }]))
    gateway = await keepGateway(stage, {
      servers: [httpServer('up', upstream.url)],
      policy: [{ name: 'payments', allow: ['*'], deny: [{ match: 'up:pay', input: 'input.amount > 100' }] }],
      limits: ['up:look:1/60'],
    })
    ;({ page } = await stage.open())
  })

  it('is in the row of the tool and on its page, with the rule and an input that shows it', async () => {
    await open('#/tools?as=viewer')
    const row = page.locator('.tool').filter({ hasText: 'pay' })
    await row.getByText('depends on the input', { exact: true }).waitFor()
    assert.equal(await page.locator('.tool').filter({ hasText: 'look' }).getByText('depends on').count(), 0)
    await takePicture(page, 'depends tools')
    await row.getByRole('link').first().click()
    const depends = page.getByRole('list', { name: 'What it depends on' })
    await depends.getByText(/denies up:pay, where input\.amount > 100/).waitFor()
    await depends.getByText('{"amount":101}').waitFor()
    assert.equal(await page.getByText('No rule denies it').count(), 0)
    await takePicture(page, 'depends tool')
  })

  it('is a limit that is used up, until when, and in the matrix how many tools depend on the call', async () => {
    await callAsViewer(gateway, 'up__look', {})
    await open('#/tools?as=viewer')
    const row = page.locator('.tool').filter({ hasText: 'look' })
    await row.getByText('not now', { exact: true }).waitFor()
    await row.getByRole('link').first().click()
    await page.getByText(/The limit up:look:1\/60 is used up/).waitFor()
    await page.getByText(/free again in/).waitFor()
    await page.goto(`${gateway.url}/#/people?view=matrix`)
    await page.getByText('1 depends', { exact: true }).first().waitFor()
    await takePicture(page, 'depends matrix')
  })

  async function open(hash: string): Promise<void> {
    await enter(page, `${gateway.url}/${hash}`)
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  }
})
