import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import type { PeopleBody, PersonRow, RunsBody } from '../../gateway/src/model/rows.ts'
import { enter, type Seat } from './browser.ts'
import { type LivelyGateway, PERSON, startLivelyGateway } from './lively-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('people and runs', (stage) => {
  let lively: LivelyGateway

  before(async () => {
    lively = await startLivelyGateway(stage.consoleDir)
  })
  after(() => lively?.close())

  it('shows everybody with their tenant, and filters and orders them', () =>
    inConsole('people', PERSON, async ({ page }) => {
      const names = () => page.locator('.people .opener').allInnerTexts()
      await page.getByRole('link', { name: 'clara', exact: true }).waitFor()
      assert.deepEqual(await names(), ['bert', 'boss', 'clara', 'gina', 'guest', 'luke', 'runner', 'vera (you)'])
      const clara = page.getByRole('row').filter({ hasText: 'clara' })
      assert.match((await clara.innerText()).replaceAll(/\s+/g, ' '), /clara of the tenant acme clerk agent/)
      const filter = page.getByLabel('Filter')
      await filter.pressSequentially('ten')
      await filter.press('ArrowDown')
      await filter.press('Enter')
      await filter.press('ArrowDown')
      await filter.press('Enter')
      await page.getByText('3 people').waitFor()
      assert.deepEqual(await names(), ['boss', 'clara', 'runner'])
      await page.getByRole('button', { name: 'Clear', exact: true }).click()
      await filter.fill('guest')
      await page.getByText('2 people').waitFor()
      assert.deepEqual(await names(), ['gina', 'guest'])
      await filter.fill('zzz')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await page.getByText('8 people').waitFor()
      await page.getByLabel('Order').selectOption('most calls')
      await page.getByText('8 people').waitFor()
      assert.ok(['bert', 'clara'].includes((await names())[0] ?? ''))
    }))

  it('opens a person with the keyboard: their halts are set with a preview, and lifted; links lead to their calls and runs', () =>
    inConsole('people?tenant=acme', PERSON, async ({ page }) => {
      await page.getByRole('link', { name: 'clara', exact: true }).focus()
      await page.keyboard.press('Enter')
      const drawer = page.getByRole('complementary', { name: 'clara' })
      await drawer.getByText('Nothing of this person is halted.').waitFor()
      await drawer.getByRole('button', { name: 'Halt this person…' }).press('Enter')
      const dialog = page.getByRole('dialog', { name: 'Halt', exact: true })
      assert.equal(await dialog.getByLabel('User').inputValue(), 'clara')
      assert.equal(await dialog.getByLabel('Tenant').inputValue(), 'acme')
      await dialog.getByText(/^This stops \d+ tools, 1 person/).waitFor()
      await dialog.getByLabel(/^Reason/).fill('a lost laptop')
      await page.keyboard.press('Enter')
      await drawer.getByText('Halted: user clara, tenant acme').waitFor()
      assert.notEqual((await lively.call('demo-clara', 'payments:balance', { account: 'CH1' })).status, 'done')
      await drawer.getByRole('button', { name: 'Release user clara, tenant acme' }).press('Enter')
      await drawer.getByText('Nothing of this person is halted.').waitFor()
      assert.equal((await lively.call('demo-clara', 'payments:balance', { account: 'CH1' })).status, 'done')
      assert.match(
        (await drawer.getByRole('link', { name: 'See as clara' }).getAttribute('href')) ?? '',
        /tools\?as=clara/,
      )
      await drawer.getByRole('link', { name: 'All runs' }).press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
      await page.locator('.runs .opener').first().press('Enter')
      await page.locator('.timeline').getByText('now untrusted').waitFor()
      await page.keyboard.press('Escape')
      await page.waitForFunction(() => document.activeElement?.matches('.runs .opener'))
    }))

  it('filters runs by label and state', () =>
    inConsole('runs', PERSON, async ({ page }) => {
      const rows = page.locator('.runs .opener')
      await rows.first().waitFor()
      await page.getByLabel('Filter').fill('label:untrusted')
      await page.getByLabel('Filter').press('Enter')
      await page.getByText('1 run', { exact: true }).waitFor()
      const row = page.locator('.runs tr.record')
      const text = (await row.innerText()).replaceAll(/\s+/g, ' ')
      for (const part of ['clara', 'acme', 'runner', 'untrusted', '1 waiting', 'open'])
        assert.ok(text.includes(part), text)
      await page.getByLabel('Filter').fill('label:untrusted state:ended')
      await page.getByLabel('Filter').press('Enter')
      await page.getByText('No run matches').waitFor()
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await row.waitFor()
    }))

  it('shows a person of a tenant nobody else, no key and no tenant’s name', async () => {
    const { people } = (await lively.api('GET', '/api/people', undefined, 'demo-boss')) as PeopleBody
    assert.deepEqual(
      people.map(({ name }) => name),
      ['boss', 'clara', 'runner'],
    )
    await inConsole('people', 'demo-boss', async ({ page }) => {
      await page.getByRole('link', { name: 'clara', exact: true }).waitFor()
      assert.equal(await page.locator('.people .opener').count(), 3)
      assert.equal(await page.locator('.tenant').count(), 0)
      assert.equal(await page.getByRole('link', { name: 'Keys', exact: true }).count(), 0)
      await page.getByRole('link', { name: 'clara', exact: true }).click()
      const drawer = page.getByRole('complementary', { name: 'clara' })
      await drawer.getByText('See as clara').waitFor()
      assert.equal(await drawer.getByRole('heading', { name: 'Keys' }).count(), 0)
      await page.goto(`${lively.url}/#/people?open=bert`)
      await page.getByText('Unknown person').waitFor()
      await page.goto(`${lively.url}/#/runs`)
      await page.locator('.runs .opener').first().waitFor()
      const { runs } = (await lively.api('GET', '/api/runs', undefined, 'demo-boss')) as RunsBody
      assert.ok(runs.length > 0 && runs.every(({ tenant }) => tenant === 'acme'))
    })
  })

  it('shows a person who signed in, where the roles are from, and what they see', () =>
    inConsole('overview', PERSON, async ({ page }) => {
      const issuer = 'https://id.example/realms/acme'
      const ann: PersonRow = {
        name: 'ann',
        user: 'ann',
        tenant: 'acme',
        as: 'ann',
        callers: [],
        seenRoles: ['clerk'],
        label: '<b>Ann</b>',
        rolesFrom: { by: 'token', issuer, at: Date.now() - 60_000 },
        issuer,
        cameBy: 'token',
        firstSeenAt: Date.now() - 3 * 24 * 3600_000,
        lastSeenAt: Date.now() - 60_000,
        clients: ['desk'],
        visible: 7,
        tokens: 90,
        calls: 0,
        refused: 0,
      }
      const body: PeopleBody = {
        people: [ann],
        total: 1,
        from: 0,
        tenants: ['acme'],
        roles: ['clerk'],
        isComplete: true,
      }
      await page.route(
        (url) => url.pathname === '/api/people',
        (route) => route.fulfill({ json: body }),
      )
      await page.goto(`${lively.url}/#/people`)
      const row = page.getByRole('row').filter({ hasText: 'ann' })
      await row.getByText(/of the token of \d\d:\d\d:\d\d from id\.example\/realms\/acme/).waitFor()
      await row.getByText('signed in by desk').waitFor()
      await row.getByText('<b>Ann</b>', { exact: true }).waitFor()
      await row.getByRole('link', { name: 'ann' }).press('Enter')
      const detail = page.getByRole('complementary', { name: 'ann' })
      const link = detail.getByRole('link', { name: 'See as, with the roles of the latest token' })
      assert.equal(await link.getAttribute('href'), '#/tools?as=ann')
      await page.goto(`${lively.url}/#/tools?as=bert`)
      await page.getByLabel('See as').fill('ann')
      await page.getByRole('option', { name: /^ann of acme \(clerk\) <b>Ann<\/b>, signed in/ }).click()
      await page.waitForFunction(() => location.hash.startsWith('#/tools?as=ann'))
    }))

  it('leads from former addresses to what took their place', () =>
    inConsole('connections', PERSON, async ({ page }) => {
      const drawer = page.getByRole('complementary', { name: 'vera' })
      await drawer.getByRole('link', { name: 'Connect mail' }).waitFor()
      await page.goto(`${lively.url}/#/keys`)
      await page.getByRole('button', { name: 'Make a key…' }).waitFor()
      await page.goto(`${lively.url}/#/callers`)
      await page.locator('.matrix').waitFor()
    }))

  it('names the tenant of each caller on every page with callers', () =>
    inConsole('calls', PERSON, async ({ page }) => {
      for (const [address, row] of [
        ['calls?user=clara', '.record'],
        ['live?user=clara', '.record'],
        ['approvals', '.request'],
        ['overview', 'tr'],
        ['runs', '.record'],
      ] as const) {
        await page.goto(`${lively.url}/#/${address}`)
        await page.locator(row).filter({ hasText: 'clara' }).locator('.tenant', { hasText: 'acme' }).first().waitFor()
      }
    }))

  async function inConsole(address: string, key: string, use: (seat: Seat) => Promise<void>): Promise<void> {
    const seat = await stage.open({ viewport: { width: 1440, height: 900 } })
    await enter(seat.page, `${lively.url}/#/${address}`, key)
    await use(seat)
  }
})
