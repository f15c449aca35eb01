import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { withBinaries } from '../../../tests/support/binaries.ts'
import { PROGRAMS, type ReplicaSet, startReplicaSet } from '../../../tests/support/replica-set.ts'
import { checkPage, enter } from './browser.ts'
import { findChromium, launchChromium } from './chromium.ts'

const executablePath = findChromium()

if (executablePath !== undefined)
  withBinaries(PROGRAMS, (paths) => {
    describe('replicas in the console', { timeout: 300_000 }, () => {
      let set: ReplicaSet
      let browser: Browser
      let page: Page

      before(async () => {
        set = await startReplicaSet(paths, { count: 2 })
        browser = await launchChromium(executablePath)
        page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
        page.setDefaultTimeout(30_000)
        await enter(page, `${set.replicas[0]?.url}/#/replicas`)
      })
      after(async () => {
        await browser?.close()
        await set?.stop()
      })

      const rowOf = (id: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: id }) })

      it('are listed with what each runs, and whether it takes calls', async () => {
        await rowOf('replica-2').getByText('takes calls').waitFor()
        assert.match(await rowOf('replica-1').innerText(), /this one/)
        const [one, other] = await Promise.all(
          ['replica-1', 'replica-2'].map((id) => rowOf(id).locator('[data-label=Configuration] .id').innerText()),
        )
        assert.equal(one, other)
        await checkPage(page, 'the replicas')
        await page.setViewportSize({ width: 390, height: 800 })
        await checkPage(page, 'the replicas on a phone')
        await page.setViewportSize({ width: 1440, height: 900 })
      })

      it('say that a file is another one than what is published', async () => {
        appendFileSync(set.file, '\n# Another file.\n')
        set.replicas[1]?.server.child.kill('SIGHUP')
        await rowOf('replica-2')
          .getByText(/its file is another one, \w+/i)
          .waitFor()
        assert.doesNotMatch(await rowOf('replica-1').innerText(), /another one/)
      })

      it('are named after a restart of a server, each with what it answered', async () => {
        await page.goto(`${set.replicas[0]?.url}/#/servers`)
        await page.getByRole('rowheader', { name: 'work' }).getByRole('link').click()
        await page.getByRole('button', { name: 'Restart…' }).click()
        const dialog = page.getByRole('dialog', { name: 'Restart work' })
        await dialog.getByRole('button', { name: 'Restart now' }).click()
        const list = dialog.getByRole('list', { name: 'Replicas' })
        await list.waitFor()
        assert.deepEqual((await list.getByRole('listitem').allInnerTexts()).toSorted(), [
          'replica-1: restarted',
          'replica-2: restarted',
        ])
        assert.equal(await dialog.getByRole('button', { name: 'Restart now' }).count(), 0)
        await checkPage(page, 'the replicas of a restart')
        await dialog.getByRole('button', { name: 'Close' }).click()
        await dialog.waitFor({ state: 'hidden' })
        await page.goto(`${set.replicas[0]?.url}/#/replicas`)
      })

      it('are lost when they are killed', async () => {
        set.replicas[1]?.server.child.kill('SIGKILL')
        await rowOf('replica-2').getByText('lost').waitFor()
        await rowOf('replica-1').getByText('takes calls').waitFor()
      })
    })
  })
