import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { checkForms, checkPage, enter, logIn, press } from './browser.ts'
import { BIDI_TEXT, type FakeGateway, type FakeOptions, HOSTILE_NAME, startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

/** Eight pages, each in four forms. */
const LONG = { timeout: 180_000 }

describeConsole('the console', (stage) => {
  let gateway: FakeGateway
  let context: BrowserContext
  let page: Page
  beforeEach(() => start())

  describe('the login', () => {
    it('lets a person in with a console key, refuses an agent’s, and logs them out', async () => {
      await page.goto(gateway.url)
      await logIn(page, 'demo-viewer')
      await page.getByRole('alert').getByText("This is an agent's key").waitFor()
      await logIn(page, 'wrong')
      await page.getByRole('alert').getByText('The key is not known.').waitFor()
      await logIn(page)
      await page.getByRole('heading', { name: 'Tools', level: 1 }).waitFor()
      const [cookie] = await context.cookies()
      assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Strict'])
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Console key').waitFor()
      await page.reload()
      await page.getByLabel('Console key').waitFor()
    })
  })

  describe('the warnings', () => {
    it('lists unknown names in the configuration, on every page', async () => {
      await start({
        warnings: [{ code: 'selector_unmatched', path: 'policy[0].deny[1]', text: `"${HOSTILE_NAME}" names no tool` }],
      })
      await open('#/live')
      await page.getByText('1 warning about the configuration').click()
      await page.getByText(`policy[0].deny[1]: "${HOSTILE_NAME}" names no tool`).waitFor()
      await checkPage(page, 'warnings')
    })
  })

  describe('Tools', () => {
    it('shows the tools that a chosen user sees, and for each hidden tool the reason', async () => {
      await open('#/tools?as=viewer')
      await summary('viewer sees 7 of 16 tools.').waitFor()
      await page.getByLabel('Search').fill('move_file')
      const move = await toolNamed('move_file').innerText()
      assert.match(move, /^deny\s+move_file/)
      assert.match(move, /Policy "viewers read" allows tag:read to role viewer/)
      await page.getByLabel('See as').fill('admin')
      await page.getByRole('option', { name: /^admin/ }).click()
      await summary('admin sees 12 of 16 tools; 1 match the filter.').waitFor()
      assert.match(await toolNamed('move_file').innerText(), /^allow/)
      assert.equal(new URL(page.url()).hash, '#/tools?as=admin&q=move_file')
    })

    it('searches for at most 256 characters', async () => {
      await open('#/tools?as=viewer')
      await page.getByLabel('Search').focus()
      await page.keyboard.insertText('x'.repeat(300))
      assert.equal(await page.getByLabel('Search').inputValue(), 'x'.repeat(256))
    })

    it('shows the tools that any caller, written as JSON, would see', async () => {
      await open('#/tools?as=viewer')
      await page.getByLabel('See as').click()
      await page.getByRole('option', { name: /another caller…/ }).click()
      const field = page.getByLabel('Caller, as JSON')
      await field.fill('{"user":"zoe"')
      await field.press('Enter')
      await page.getByText('Invalid JSON').waitFor()
      await field.fill('{"user":"zoe","roles":["viewer"]}')
      await field.press('Enter')
      await summary('zoe sees 7 of 16 tools.').waitFor()
      await page.reload()
      await summary('zoe sees 7 of 16 tools.').waitFor()
    })

    it('shows why a group is unavailable, for how long and what to do, and follows changes', async () => {
      await open('#/tools?as=viewer')
      const group = sectionOf('Web pages')
      await group.getByText('unavailable', { exact: true }).waitFor()
      await group.getByText('Nothing listens on 127.0.0.1:4444 (ECONNREFUSED).').waitFor()
      await group.getByText('Start something on port 4444').waitFor()
      await group.getByText('for 3 min').waitFor()
      assert.match(await toolNamed('get-tiny-image').innerText(), /^wait[^]*unavailable/)
      gateway.setWeb(true)
      await group.getByText('available', { exact: true }).waitFor()
      await summary('viewer sees 8 of 16 tools.').waitFor()
      assert.match(await toolNamed('get-tiny-image').innerText(), /^allow/)
      gateway.setWeb(false)
      await group.getByText('unavailable', { exact: true }).waitFor()
      await summary('viewer sees 7 of 16 tools.').waitFor()
    })

    it('has badges for halted and suspended tools', async () => {
      await open('#/tools?as=admin&q=halted')
      assert.match(await toolNamed('forget').innerText(), /^wait[^]*halted[^]*Halted by olga: it forgot too much/)
      await page.getByLabel('Search').fill('search_files')
      assert.match(await toolNamed('search_files').innerText(), /^wait[^]*suspended/)
    })

    it('filters by word, outcome and app, and the address keeps them', async () => {
      await open('#/tools?as=viewer')
      await page.getByRole('button', { name: /^deny/ }).click()
      await page.getByLabel('Search').fill('files write')
      await summary('3 match the filter').waitFor()
      assert.equal(new URL(page.url()).hash, '#/tools?as=viewer&show=deny&q=files+write')
      await page.reload()
      await summary('3 match the filter').waitFor()
      await page.getByLabel('Search').fill('no such thing')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await page.getByLabel('App').selectOption('research')
      await summary('4 match the filter').waitFor()
      await sectionOf('notes').getByText('3 of 3 tools visible').waitFor()
      assert.equal(await page.getByRole('heading', { level: 2 }).count(), 2)
    })

    it('lists resources by server, with why they are hidden, and links to their pages', async () => {
      await open('#/tools?as=viewer')
      await page.getByLabel('Kind').selectOption('resource')
      await summary('viewer sees 1 of 2 resources.').waitFor()
      assert.equal(new URL(page.url()).hash, '#/tools?as=viewer&kind=resource')
      await sectionOf('files').getByText('1 of 2 resources visible').waitFor()
      assert.match(
        await toolNamed('file:///docs/secret.md').innerText(),
        /^deny\s+file:\/\/\/docs\/secret\.md\s+resource/,
      )
      await checkPage(page, 'resources')
      await page.getByRole('link', { name: 'file:///docs/plan.md' }).click()
      await page.getByRole('link', { name: 'Its page, with the playground' }).click()
      await page.getByRole('heading', { name: 'resource:files:file:///docs/plan.md', level: 1 }).waitFor()
      assert.equal(await page.getByText('Not listed.').count(), 0)
    })

    it('lists the requirements of a chosen app, with the state and what to do, and follows changes', async () => {
      await open('#/tools?as=viewer')
      await summary('viewer sees 7 of 16 tools.').waitFor()
      const needs = page.getByRole('region', { name: 'Requirements' })
      assert.equal(await needs.count(), 0)
      await page.getByLabel('App').selectOption('research')
      await needs.getByText('Research needs 3 things: 2 not available').waitFor()
      const port = needs.getByRole('listitem').filter({ hasText: /^\S+127\.0\.0\.1:4444/ })
      assert.match(
        await port.innerText(),
        /^unavailable[^]*127\.0\.0\.1:4444[^]*for 3 min[^]*groups web, notes[^]*Nothing listens on 127\.0\.0\.1:4444 \(ECONNREFUSED\)\. Start something on port 4444/,
      )
      await needs.getByText(`the environment variable ${HOSTILE_NAME}`).waitFor()
      await checkPage(page, 'needs')
      gateway.setWeb(true)
      await needs.getByText('Research needs 3 things: 1 not available').waitFor()
      assert.match(await port.innerText(), /^available/)
      await page.getByLabel('App').selectOption('')
      await needs.waitFor({ state: 'detached' })
    })

    it('reports a server that is down and tools that cannot be offered', async () => {
      await open('#/tools?as=viewer')
      await page.getByText('Exited with code 1 (Error: REMOTE_TOKEN is wrong).').waitFor()
      await page.getByText('1 listed item cannot be offered').click()
      await page.getByText('It needs tasks, which are not offered yet.').waitFor()
    })

    it('shows approvers whose instances of a server there are', async () => {
      await open('#/tools?as=viewer')
      await page.getByText('an instance for each user: 1 running, 1 idle').click()
      await page.getByText('acme / vera').waitFor()
    })

    it('folds a group', async () => {
      await open('#/tools?as=viewer')
      const fold = page.getByRole('button', { name: 'notes', exact: true })
      await toolNamed('read_graph').waitFor()
      await fold.click()
      await toolNamed('read_graph').waitFor({ state: 'detached' })
      assert.equal(await fold.getAttribute('aria-expanded'), 'false')
    })
  })

  describe('a tool', () => {
    it('has its decision, schema, exports with their warnings and cost, limits and recent calls', async () => {
      await open('#/tools?as=admin&q=open_nodes')
      await page.getByRole('link', { name: 'open_nodes' }).click()
      await page.getByRole('link', { name: 'Its page, with the playground' }).click()
      await page.getByRole('heading', { name: 'memory:open_nodes', level: 1 }).waitFor()
      await page.getByText('No rule denies it or asks about it.').waitFor()
      await page.getByText('*: 100 in 1 min').waitFor()
      await page.getByRole('group', { name: 'Input schema' }).getByText('"type": "object"').waitFor()
      const openai = page.getByRole('tab', { name: /^openai-chat \d+ tokens$/ })
      await openai.focus()
      for (const name of [/^openai-responses/, /^anthropic/, /^gemini \d+ tokens 1 warning$/]) {
        await page.keyboard.press('ArrowRight')
        await page.getByRole('tab', { name, selected: true }).waitFor()
      }
      await page.getByText('oneOf is rewritten, to anyOf').waitFor()
      await page.getByText('tool_result').first().waitFor()
      await page.getByRole('link', { name: 'All calls' }).click()
      await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor()
      assert.equal(new URL(page.url()).hash, '#/calls?tool=memory:open_nodes')
    })

    it('says that the tool is unknown', async () => {
      await open('#/tool?id=no:such&as=admin')
      await page.getByText('Unknown tool').waitFor()
    })

    it('goes on saying so while it asks again', async () => {
      await restart({ withoutSocket: true })
      await open('#/tool?id=no:such&as=admin')
      await page.getByText('Unknown tool').waitFor()
      const isAskedAgain = Promise.withResolvers<void>()
      const mayAnswer = Promise.withResolvers<void>()
      await page.route('**/api/tool?*', async (route) => {
        isAskedAgain.resolve()
        await mayAnswer.promise
        await route.continue()
      })
      await isAskedAgain.promise
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
      assert.equal(await page.getByText('Unknown tool').isVisible(), true)
      assert.equal(await page.getByText('Loading the tool').isVisible(), false)
      mayAnswer.resolve()
      await page.unrouteAll({ behavior: 'wait' })
    })

    it('shows what it knows if the gateway does not report the rest', async () => {
      await page.route('**/api/tool?*', (route) =>
        route.fulfill({
          status: 404,
          json: { error: { code: 'route_unknown', message: 'Nothing is served here.' } },
        }),
      )
      await open('#/tool?id=files:move_file&as=viewer')
      await page.getByText('Policy "viewers read" allows tag:read').waitFor()
      await page.getByText('This gateway does not report the schema').waitFor()
    })
  })

  describe('untrusted text', () => {
    it('is shown as text, with invisible characters made visible', async () => {
      await open('#/tools?as=admin&q=delete_entities')
      const tool = toolNamed('delete_entities')
      await tool.getByText(HOSTILE_NAME).first().waitFor()
      await tool.getByText('reportU+202Efdp.exe').first().waitFor()
      await goTo('#/tool?id=memory:delete_entities&as=admin')
      await page.getByText('"description": "reportU+202Efdp.exe"').first().waitFor()
      await goTo('#/live?event=tool_blocked')
      await page.getByRole('button', { name: HOSTILE_NAME }).first().waitFor()
      await goTo('#/approvals')
      await page.getByText('U+202E').first().waitFor()
      assert.equal(await page.getByText('U+200B').count(), 1)
      assert.equal(await page.locator('body script').count(), await page.locator('body > script[src]').count())
      assert.ok(!(await page.locator('body').innerText()).includes(BIDI_TEXT))
      assert.notEqual(await page.title(), 'owned')
    })
  })

  describe('Live', () => {
    it('shows new records as they arrive, newest first, and counts them in the chart', async () => {
      await open('#/live')
      const newest = await firstSeq()
      gateway.record(3)
      await waitForFirst(newest + 3)
      await page.getByRole('img', { name: /^Calls over time: \d+ done/ }).waitFor()
      await page.locator('canvas').nth(1).waitFor()
      await page.getByRole('button', { name: '1 h' }).click()
      assert.equal(new URL(page.url()).hash, '#/live?span=1h')
    })

    it('counts all calls of the period, even those that are not loaded', async () => {
      await restart({ recordCount: 4400 })
      await open('#/live?span=1d')
      await page.getByText('1,000 newest records, more below').waitFor()
      // One of eleven records is a refusal.
      await page.locator('.legend-item.refused').getByText('400', { exact: true }).waitFor()
      await page.locator('.legend-item.limited').getByText('400', { exact: true }).waitFor()
      await page.getByText('Latency of the newest 1,000 records only').waitFor()
      gateway.record(11)
      await page.locator('.legend-item.refused').getByText('401', { exact: true }).waitFor()
      await page.getByLabel('Filter').fill('user:viewer')
      await page.getByLabel('Filter').press('Enter')
      await page.getByRole('img', { name: /^Calls over time: .* 13\d refused/ }).waitFor()
    })

    it('draws the newest bucket of the chart', async () => {
      // One call, less than a second ago, so it is in the newest bucket.
      await restart({ recordCount: 0 })
      gateway.record(1)
      await open('#/live?span=1d')
      await page.locator('canvas').first().waitFor()
      await page.waitForFunction(() => {
        const plot = document.querySelector('.plot')
        const canvas = plot?.querySelector('canvas')
        const area = plot?.querySelector('.u-over')?.getBoundingClientRect()
        const drawing = canvas?.getContext('2d')
        if (!canvas || !area || !drawing) return false
        const scale = canvas.width / canvas.getBoundingClientRect().width
        const { left, top } = canvas.getBoundingClientRect()
        const width = Math.floor((area.width / 60) * scale)
        const { data } = drawing.getImageData(
          (area.right - left) * scale - width,
          (area.top - top) * scale,
          width,
          area.height * scale,
        )
        const [r, g, b] = (
          getComputedStyle(document.documentElement)
            .getPropertyValue('--chart-done')
            .match(/[0-9a-f]{2}/g) ?? []
        ).map((part) => Number.parseInt(part, 16))
        for (let i = 0; i < data.length; i += 4)
          if (data[i] === r && data[i + 1] === g && data[i + 2] === b) return true
        return false
      })
    })

    it('keeps the table still while it is paused or scrolled, and shows how many records are new', async () => {
      await open('#/live')
      await page.getByRole('button', { name: 'Pause' }).click()
      const newest = await firstSeq()
      gateway.record(4)
      await page.getByRole('button', { name: 'Show 4 new' }).waitFor()
      assert.equal(await firstSeq(), newest)
      await page.getByRole('button', { name: 'Show 4 new' }).click()
      await waitForFirst(newest + 4)
      await page.mouse.wheel(0, 1200)
      await page.waitForFunction(() => scrollY > 500)
      gateway.record(2)
      await page.getByRole('button', { name: 'Show 2 new' }).click()
      await waitForFirst(newest + 6)
    })

    it('filters by event, outcome, tool and user, new records too, and the address keeps it', async () => {
      await open('#/live')
      const filter = page.getByLabel('Filter')
      await filter.fill('event:tool_rate_limited')
      await filter.press('Enter')
      await page.getByRole('cell', { name: 'limit 5/60, free again in 14 s' }).first().waitFor()
      await page.getByText('24 records').waitFor()
      await filter.fill('event:tool_rate_limited user:viewer')
      await filter.press('Enter')
      await page.getByText('8 records').waitFor()
      assert.equal(new URL(page.url()).hash, '#/live?event=tool_rate_limited&user=viewer')
      gateway.record(33)
      await page.getByText('9 records').waitFor()
      await page.reload()
      await page.getByText('9 records').waitFor()
      assert.equal(await filter.inputValue(), 'event:tool_rate_limited user:viewer')
      await filter.fill('tool:no:such')
      await filter.press('Enter')
      await page.getByText('No record matches').waitFor()
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await filter.fill('outcome:failed')
      await filter.press('Enter')
      await page.getByRole('cell', { name: 'ENOENT: no such file or directory, open notes.txt' }).first().waitFor()
    })

    it('filters by a clicked value', async () => {
      await open('#/live')
      await page.getByRole('button', { name: 'admin' }).nth(3).click()
      await page.waitForFunction(() => location.hash === '#/live?user=admin')
      await page.getByText('87 records').waitFor()
      assert.equal(await page.getByRole('cell', { name: 'viewer', exact: true }).count(), 0)
    })

    it('opens a record with its whole call and decision, and returns the focus', async () => {
      await open('#/live?tool=everything:get-env')
      const opener = page.getByRole('link', { name: /record \d+$/ }).first()
      await opener.focus()
      await page.keyboard.press('Enter')
      const drawer = page.getByRole('complementary', { name: /^Record \d+/ })
      await drawer.getByRole('heading', { name: 'All records of this call' }).waitFor()
      await drawer
        .getByText(/^record \d+/)
        .first()
        .waitFor()
      await drawer.getByRole('heading', { name: /^Current decision for/ }).waitFor()
      await page.keyboard.press('Escape')
      await drawer.waitFor({ state: 'detached' })
      // A frame or two after the dialog has closed.
      await page.waitForFunction(() => /record \d+$/.test(document.activeElement?.ariaLabel ?? ''))
    })

    it('keeps the choices of the address in the links of its records', async () => {
      await open('#/live?user=admin')
      const link = () => page.locator('a.opener').first().getAttribute('href')
      const seq = await firstSeq()
      assert.equal(await link(), `#/live?user=admin&record=${seq}`)
      await page.getByRole('button', { name: '1 h' }).click()
      await page.waitForFunction(() => location.hash.includes('span'))
      assert.equal(await link(), `#/live?user=admin&span=1h&record=${seq}`)
    })

    it('shows the date of a record from the next day on', async () => {
      await open('#/live')
      const seq = await firstSeq()
      const time = page.locator(`a.opener[data-opens="${seq}"] time`)
      assert.match(await time.innerText(), /^\d\d:\d\d:\d\d$/)
      await page.clock.setFixedTime(Date.now() + 24 * 3600_000)
      gateway.record(1)
      await waitForFirst(seq + 1)
      assert.match(await time.innerText(), /^\d+ \w+ (\d{4} )?\d\d:\d\d$/)
      assert.match((await time.getAttribute('title')) ?? '', /^\d+ \w+ \d{4} \d\d:\d\d:\d\d\.\d{3} UTC[+-]\d\d:\d\d$/)
    })

    it('opens a record by its address alone', async () => {
      await enter(page, `${gateway.url}/#/live?user=nobody&record=7`)
      await page.getByRole('complementary', { name: 'Record 7' }).getByText('c7').first().waitFor()
    })

    it('polls if the socket cannot be opened', async () => {
      await restart({ withoutSocket: true })
      await open('#/live')
      await page.getByText('Every 2 s').waitFor()
      const newest = await firstSeq()
      gateway.record(2)
      await waitForFirst(newest + 2)
    })
  })

  describe('Approvals', () => {
    it('shows a request as it arrives, and its decision elsewhere', async () => {
      await open('#/approvals')
      // The first list includes everything before it.
      await page.getByRole('heading', { name: 'files:write_file' }).waitFor()
      gateway.ask('a9')
      await page.getByRole('button', { name: '1 new request – show' }).click()
      await page.getByRole('link', { name: 'files:move_file' }).click()
      const card = page.locator('.detail').filter({ has: page.getByRole('heading', { name: 'files:move_file' }) })
      await card.waitFor()
      await page.getByRole('link', { name: /^Approvals 3/ }).waitFor()
      const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
      const headers = { cookie, origin: gateway.url, 'content-type': 'application/json' }
      await fetch(`${gateway.url}/api/approvals/a9`, { method: 'POST', headers, body: '{"decision":"reject"}' })
      await card.getByText('The call will not run.').waitFor()
      await card.getByText('by owner').waitFor()
      assert.deepEqual(await card.getByRole('button').allInnerTexts(), ['Close'])
      await page.getByRole('link', { name: /^Approvals 2/ }).waitFor()
    })

    it('sends a verdict with its reason, announces it, keeps the focus, and shows the result', async () => {
      await page.setViewportSize({ width: 1280, height: 1000 })
      await open('#/approvals')
      const card = page.locator('.detail').filter({ has: page.getByRole('heading', { name: 'files:write_file' }) })
      assert.match(await card.locator('pre').innerText(), /"content":\s+Dear team,\n+the figures are in\.U\+200B\n/)
      await card.getByLabel('Reason').fill('looks odd')
      await press(card.getByRole('button', { name: 'Reject files:write_file' }))
      await page.getByRole('status').getByText('Rejected: files:write_file').waitFor()
      await card.getByText('“looks odd”').waitFor()
      await card.getByText('The call will not run.').waitFor()
      assert.ok(await page.evaluate(() => document.activeElement?.classList.contains('result')))
      assert.deepEqual(gateway.verdicts, [{ id: 'a1', decision: 'reject', by: 'owner', reason: 'looks odd' }])
      await page.getByRole('link', { name: 'memory:delete_entities' }).click()
      await press(page.getByRole('button', { name: 'Approve memory:delete_entities' }))
      await page.getByRole('button', { name: 'Clear 2 finished' }).click()
      await page.getByText('No call is waiting').waitFor()
      await page.getByRole('link', { name: 'History' }).click()
      await page.locator('.decided').getByText('“looks odd”').waitFor()
    })

    it('offers no button to a person who may not decide, and names the keys that can', async () => {
      await open('#/approvals', 'demo-looker')
      await page.getByText('The console key of owner can.').first().waitFor()
      assert.equal(await page.getByText('You may not decide this request.').count(), 1)
      assert.equal(await page.getByRole('checkbox', { disabled: true }).count(), 2)
      assert.equal(await page.getByRole('button', { name: /^Approve|^Reject|^Revoke/ }).count(), 0)
    })

    it('says what is missing if no key can decide', async () => {
      await open('#/approvals')
      gateway.ask('a9', 'acme')
      await page.getByRole('button', { name: '1 new request – show' }).click()
      await page.getByRole('link', { name: 'files:move_file' }).click()
      const card = page.locator('.detail').filter({ has: page.getByRole('heading', { name: 'files:move_file' }) })
      await card.getByText('it needs the role approver and the tenant acme').waitFor()
      assert.deepEqual(await card.getByRole('button').allInnerTexts(), ['Close'])
      assert.equal(await page.getByRole('checkbox', { disabled: true }).count(), 1)
    })

    it('revokes an unused approval, on its card and in the history', async () => {
      await page.setViewportSize({ width: 1280, height: 1000 })
      await open('#/approvals')
      const card = page.locator('.detail').filter({ has: page.getByRole('heading', { name: 'files:write_file' }) })
      await press(card.getByRole('button', { name: 'Approve files:write_file' }))
      await press(card.getByRole('button', { name: 'Revoke the approval of files:write_file' }))
      await card.getByText('The approval was revoked.').waitFor()
      await page.getByRole('link', { name: 'memory:delete_entities' }).click()
      await press(page.getByRole('button', { name: 'Approve memory:delete_entities' }))
      await page.getByText('The call can run once.').waitFor()
      await page.getByRole('link', { name: 'History' }).click()
      await page.locator('.decided .badge').getByText('revoked').waitFor()
      const row = page.locator('.decided-row').filter({ hasText: 'memory:delete_entities' })
      await press(row.getByRole('button', { name: 'Revoke the approval of memory:delete_entities' }))
      await row.locator('.badge').getByText('revoked').waitFor()
      assert.deepEqual(
        gateway.verdicts.map(({ id, decision }) => [id, decision]),
        [
          ['a1', 'approve'],
          ['a1', 'revoke'],
          ['a2', 'approve'],
          ['a2', 'revoke'],
        ],
      )
    })
  })

  describe('People and keys', () => {
    it('shows who sees which tools, by group and by tool', async () => {
      await open('#/callers')
      await page.getByRole('link', { name: 'Who sees what', exact: true }).and(page.locator('[aria-current]')).waitFor()
      const row = page.getByRole('row', { name: /^files/ })
      await row.getByRole('cell', { name: '5 of 6 1 ask' }).or(row.getByText('5 of 6')).first().waitFor()
      assert.match(await row.innerText(), /2 of 6/)
      await page.getByRole('button', { name: 'Web pages' }).click()
      const tool = page.getByRole('row', { name: /^everything:gzip-file-as-resource/ })
      assert.match(await tool.innerText(), /deny\s+wait\s+wait/)
      assert.equal(new URL(page.url()).hash, '#/people?view=matrix&open=group+web')
      await page
        .getByRole('row', { name: /^notes/ })
        .getByRole('link')
        .first()
        .click()
      await summary('viewer sees 7 of 16 tools; 3 match the filter.').waitFor()
    })
  })

  describe('a lost gateway', () => {
    it('leaves the page on the screen, marked as out of date, and reconnects when it is back', async () => {
      await open('#/live')
      const newest = await firstSeq()
      await restart({ recordCount: 300 })
      await page
        .getByText(/^Not connected\. This page is from \d\d:\d\d:\d\d/)
        .or(page.getByText('Your session has ended'))
        .first()
        .waitFor()
      assert.equal(await firstSeq(), newest)
      await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
      await logIn(page)
      await page.getByText('Your session has ended').waitFor({ state: 'detached' })
      await waitForFirst(300)
      gateway.record(1)
      await waitForFirst(301)
      await page.getByText('Live', { exact: true }).last().waitFor()
    })

    it('shows everything but the charts if those cannot be loaded', async () => {
      await page.route('**/assets/charts-*.js', (route) => route.abort())
      await open('#/live')
      await page.getByText('The charts could not be loaded.').waitFor()
      await page.getByRole('row').nth(5).waitFor()
      await page.unroute('**/assets/charts-*.js')
      await page.getByRole('button', { name: 'Reload the page' }).click()
      await page.locator('canvas').first().waitFor()
    })

    it('shows since when the page is out of date, on every page, and recovers by itself', async () => {
      await restart({ withoutSocket: true })
      await open('#/live')
      await page.getByRole('row').nth(11).waitFor()
      gateway.setBroken(true)
      await page
        .getByRole('status')
        .getByText(/^Not connected\. This page is from \d\d:\d\d:\d\d/)
        .waitFor()
      assert.ok((await page.getByRole('row').count()) > 10)
      assert.equal(await page.locator('main.stale').count(), 1)
      gateway.setBroken(false)
      await page
        .getByText(/^Not connected/)
        .first()
        .waitFor({ state: 'detached' })
      assert.equal(await page.locator('main.stale').count(), 0)
    })
  })

  describe('a new gateway', () => {
    it('says what to do when it is empty', async () => {
      await restart({ empty: true })
      await open('#/tools')
      await page.getByText('No server has listed a tool yet').waitFor()
      await page.getByRole('link', { name: 'Live' }).click()
      await page.getByText('No calls yet').waitFor()
      await page.getByRole('link', { name: 'Approvals' }).click()
      await page.getByText('No call is waiting').waitFor()
      await page.getByRole('link', { name: 'History' }).click()
      await page.getByText('No decisions yet').waitFor()
    })
  })

  describe('the keyboard', () => {
    it('is enough for the login, the list, a tool, a record, and back', async () => {
      await page.goto(gateway.url)
      await page.waitForFunction(() => document.activeElement?.matches('.login input'))
      await page.keyboard.type('demo-console')
      await page.keyboard.press('Enter')
      await summary('viewer sees').waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'MAIN')
      await page.keyboard.press('Tab')
      await page.keyboard.press('ArrowDown')
      await page.getByRole('option', { name: /^operator/ }).waitFor()
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await summary('operator sees').waitFor()
      await page.getByRole('button', { name: 'Web pages' }).focus()
      await page.keyboard.press('ArrowDown')
      assert.equal(await focused(), 'get-tiny-image')
      await page.keyboard.press('End')
      await page.waitForFunction(() => document.activeElement?.textContent === 'forget')
      await page.keyboard.press('Home')
      await page.waitForFunction(() => document.activeElement?.textContent === 'Web pages')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.getByRole('complementary', { name: 'everything:get-tiny-image' }).waitFor()
      await page.keyboard.press('ArrowRight')
      await page.waitForFunction(() => document.activeElement?.matches('.detail'))
      await page.keyboard.press('Tab')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'everything:get-tiny-image', level: 1 }).waitFor()
      await page.waitForFunction(() => document.activeElement?.tagName === 'H1')
      await goTo('#/live')
      await page.getByRole('link', { name: /record 260$/ }).focus()
      await page.keyboard.press('PageDown')
      await page.waitForFunction(() => document.activeElement?.ariaLabel?.endsWith('record 248'))
      await page.keyboard.press('End')
      await page.waitForFunction(() => document.activeElement?.ariaLabel?.endsWith('record 1'))
    })
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', LONG, async () => {
    const check = (where: string) => checkForms(page, where, [1200, 360])
    await page.goto(gateway.url)
    await page.getByLabel('Console key').waitFor()
    await check('login')
    await logIn(page)
    await summary('viewer sees').waitFor()
    await check('tools')
    await goTo('#/tool?id=memory:delete_entities&as=admin')
    await page.getByRole('tab').first().waitFor()
    await check('a tool')
    await goTo('#/live')
    await page.locator('canvas').first().waitFor()
    await check('live')
    await goTo('#/live?record=258')
    await page.getByRole('heading', { name: /^Current decision/ }).waitFor()
    await check('a record')
    await goTo('#/approvals')
    await page.getByText('The input', { exact: true }).first().waitFor()
    await check('approvals')
    await goTo('#/people?view=matrix&open=group+web')
    await page
      .getByRole('row', { name: /gzip-file/ })
      .getByText('deny')
      .waitFor()
    await check('callers')
    gateway.setBroken(true)
    await goTo('#/tools?as=looker')
    await page.getByText('The request failed').waitFor()
    await check('a fault')
  })

  async function start(options: Partial<FakeOptions> = {}): Promise<void> {
    gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir, ...options }))
    ;({ context, page } = await stage.open())
  }

  /** Starts a gateway on the same port, as after a restart. */
  async function restart(options: Partial<FakeOptions>): Promise<void> {
    const { port } = gateway
    await gateway.close()
    gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir, port, ...options }))
  }

  async function open(hash: string, key?: string): Promise<void> {
    await enter(page, `${gateway.url}/${hash}`, key)
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  }

  async function goTo(hash: string): Promise<void> {
    await page.goto(`${gateway.url}/${hash}`)
  }

  function toolNamed(name: string) {
    return page
      .locator('.tool')
      .filter({ has: page.getByRole('link', { name, exact: true }) })
      .first()
  }

  function summary(text: string) {
    return page.locator('.summary').filter({ hasText: text })
  }

  function sectionOf(name: string) {
    return page.locator('.section').filter({ has: page.getByRole('button', { name, exact: true }) })
  }

  function focused(): Promise<string> {
    return page.evaluate(() => document.activeElement?.textContent ?? '')
  }

  async function firstSeq(): Promise<number> {
    const title = await page.locator('a.opener').first().getAttribute('title')
    return Number(title?.split('record ')[1])
  }

  async function waitForFirst(seq: number): Promise<void> {
    await page.waitForFunction(
      (wanted) => document.querySelector('a.opener')?.getAttribute('title')?.endsWith(`record ${wanted}`),
      seq,
    )
  }
})
