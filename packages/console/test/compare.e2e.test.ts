import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { AuditBody, RunningGateway } from '../../gateway/src/index.ts'
import { nodeServer, SERVERS } from '../../gateway/fixtures/servers.ts'
import { send } from '../../../tests/support/http.ts'
import { KEYS } from '../../../tests/support/keys.ts'
import { checkForms, checkPage, enter, press } from './browser.ts'
import { callAsViewer, keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

const LINES = Array.from({ length: 60 }, (_, i) => `setting_${i} = ${i}`)
const PRESENT = `${LINES.join('\n')}\n<script>document.title = 'taken'</script>\nfor \u202Eevar\n`
const PROPOSED = PRESENT.replace('setting_30 = 30', 'setting_30 = 31\nsetting_30b = "new"').replace(
  'setting_2 = 2\n',
  '',
)

describeConsole('the card of a call that would write a file', (stage) => {
  let folder: string
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolgate-compare-'))
    writeFileSync(join(folder, 'app.conf'), PRESENT)
    const compare = { text: 'input.content', with: 'read_text_file', input: { path: 'input.path' } }
    const tools = new Map([['write_file', { compare }]])
    gateway = await keepGateway(stage, {
      servers: [nodeServer([SERVERS.filesystem, folder], { name: 'files', tools })],
      policy: [{ ask: ['files:write_file', 'files:create_directory'], allow: ['*'] }],
    })
  })
  afterEach(async () => {
    rmSync(folder, { recursive: true })
  })

  it('shows the difference to what is there, light and dark, wide and narrow', async () => {
    await open()
    const card = await ask('app.conf', PROPOSED)
    assert.deepEqual(await readings(), [], 'nothing is read before the person asks')
    await card.getByRole('button', { name: 'Compare with what is there' }).click()
    await card.getByText(/As of \d\d:\d\d:\d\d, read with files:read_text_file\. It may change until/).waitFor()
    const shown = card.getByRole('group', { name: 'What files:write_file would change, by input.content' })
    assert.deepEqual(await shown.locator('.removed').allTextContents(), [
      'removed: setting_2 = 2',
      'removed: setting_30 = 30',
    ])
    assert.deepEqual(await shown.locator('.added').allTextContents(), [
      'added: setting_30 = 31',
      'added: setting_30b = "new"',
    ])
    assert.deepEqual(await shown.locator('.skipped-lines').allTextContents(), ['21 equal lines', '29 equal lines'])
    await checkForms(page, 'a difference')
    assert.deepEqual(await readings(), ['read for owner, who decides the approval'])
  })

  it('is compared with the keyboard alone, again after a change, and decided', async () => {
    await open()
    await ask('app.conf', PROPOSED)
    await page.keyboard.press('j')
    await page.keyboard.press('c')
    await page.locator('.comparison .added').first().waitFor()
    writeFileSync(join(folder, 'app.conf'), PROPOSED)
    await page.keyboard.press('c')
    await page.getByText('There is no difference.').waitFor()
    assert.equal(await page.evaluate(() => document.activeElement?.closest('.request') !== null), true)
    writeFileSync(join(folder, 'app.conf'), 'three\nmore\nlines')
    await page.keyboard.press('Tab')
    while (!(await focused('Read again'))) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('.comparison .removed').nth(2).waitFor()
    // A person can scroll the difference with the keyboard, too.
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate(() => document.activeElement?.matches('.comparison pre')), true)
    await page.locator('.approval .approve[aria-disabled=false]').waitFor()
    await page.keyboard.press('a')
    await page.getByText('The call can run once.').waitFor()
    assert.ok(await page.locator('.comparison .removed').first().isVisible(), 'the card keeps its size')
    await call(join(folder, 'app.conf'), PROPOSED)
    await page.getByText('The call has run.').waitFor()
    assert.equal(readFileSync(join(folder, 'app.conf'), 'utf8'), PROPOSED)
  })

  it('shows hidden characters and markup of the server as text', async () => {
    await open()
    const card = await ask('app.conf', 'nothing')
    await card.getByRole('button', { name: 'Compare with what is there' }).click()
    await card.locator('.removed').filter({ hasText: "<script>document.title = 'taken'</script>" }).waitFor()
    await card.locator('.removed .mark').filter({ hasText: 'U+202E' }).waitFor()
    assert.equal(await page.evaluate(() => document.querySelector('.comparison script')), null)
    assert.notEqual(await page.title(), 'taken')
  })

  it('says why nothing is shown: a file that is not there yet, and an input with masked parts', async () => {
    await open()
    const fresh = await ask('new.conf', 'first')
    await fresh.getByRole('button', { name: 'Compare with what is there' }).click()
    await fresh.getByText(/Not shown: files:read_text_file reports an error: ENOENT/).waitFor()
    await press(fresh.getByRole('button', { name: 'Reject files:write_file' }))
    const masked = await ask('app.conf', 'token: ghp_0123456789abcdefghijklmnopqrstuvwxyzAB')
    await masked.getByRole('button', { name: 'Compare with what is there' }).click()
    await masked.getByText(/Not shown: The input is shown with parts of it masked/).waitFor()
    await checkPage(page, 'why nothing is shown')
  })

  it('offers it only where the configuration says how to read', async () => {
    await open()
    await callAsViewer(gateway, 'files__create_directory', { path: join(folder, 'sub') })
    const card = page.locator('.approval').filter({ hasText: 'files:create_directory' })
    await card.getByRole('button', { name: 'Approve files:create_directory' }).waitFor()
    assert.equal(await card.getByRole('button', { name: /Compare/ }).count(), 0)
  })

  async function open(): Promise<void> {
    ;({ page } = await stage.open({ viewport: { width: 1280, height: 1000 } }))
    await enter(page, `${gateway.url}/#/approvals`)
    await page.getByText('No call is waiting').waitFor()
  }

  /** Asks for a write as an agent does, and returns its card. */
  async function ask(name: string, content: string): Promise<Locator> {
    const rows = page.locator('.request')
    const before = await rows.count()
    await call(join(folder, name), content)
    if (before > 0) await page.getByRole('button', { name: /new request/ }).click()
    await rows.nth(before).waitFor()
    await rows.last().locator('.opener').click()
    const card = page.locator('.approval').filter({ hasText: name })
    await card.waitFor()
    return card
  }

  function call(path: string, content: string): Promise<string> {
    return callAsViewer(gateway, 'files__write_file', { path, content })
  }

  async function readings(): Promise<readonly (string | undefined)[]> {
    const answer = await send(`${gateway.url}/api/audit?tool=files:read_text_file&event=tool_call`, {
      method: 'GET',
      headers: { authorization: `Bearer ${KEYS.console}` },
    })
    return (answer.json() as AuditBody).records.map(({ detail }) => detail)
  }

  function focused(text: string): Promise<boolean> {
    return page.evaluate((wanted) => document.activeElement?.textContent?.includes(wanted) === true, text)
  }
})
