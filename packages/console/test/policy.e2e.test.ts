import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import { loadConfig, type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { tempFolder } from '../../../tests/support/gateway.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { send } from '../../../tests/support/http.ts'
import { checkForms, checkPage, enter, takePicture } from './browser.ts'
import { describeConsole } from './suite.ts'

const POLICY = `policy:
  - name: files
    allow:
      - "up:*"
      - "gone:*"
    deny:
      - { match: "up:pay", unless: "'clerk' in caller.roles", message: "Clerks pay." }
      - { match: "up:look", when: "'guest' in caller.roles", mode: shadow }
`
const LOOSER = POLICY.replace(/^ +- \{ match: "up:pay".*\n/m, '')
const READING = POLICY.replace(
  '    deny:\n',
  `    deny:\n      - { match: "up:look", input: "input.a + input.b == 'xy'" }\n`,
)
const TIGHTER = POLICY.replace(', mode: shadow', '')
/** The line of the policy in the file. */
const FIRST = 9

describeConsole('the policy page', (stage) => {
  let upstream: RecordingServer
  let file: string
  let gateway: RunningGateway
  let page: Page

  beforeEach(async () => {
    upstream = await stage.keep(startRecordingServer([{ name: 'look' }, { name: 'pay' }]))
    const folder = tempFolder()
    await stage.keep({ close: folder.remove })
    file = join(folder.path, 'toolgate.yaml')
    ;({ page } = await stage.open())
  })

  const write = (policy: string) => writeFileSync(file, fileOf(upstream.url, policy))
  const line = (offset: number) => page.locator(`#line-${FIRST + offset}`)
  const editor = () => page.getByLabel(`The section policy, from line ${FIRST} of the file`)
  const ask = () => page.getByRole('button', { name: 'What would change' }).click()

  it('shows the file with line numbers, and what each clause has done', async () => {
    await start(POLICY)
    await callAll()
    await openPage()
    assert.match(await line(6).innerText(), /15\s+- \{ match: "up:pay".*files#deny\[0\]\s+held for 2 calls\s+last /s)
    assert.match(await line(6).innerText(), /counted for /)
    assert.match(await line(4).innerText(), /gone:\*.*files#allow\[1\]\s+matches nothing\s+never held/s)
    assert.match(await line(7).innerText(), /files#deny\[1\]\s+shadow\s+would have refused 1 call\s/s)
    assert.equal(
      await line(4).locator('.clause-note').evaluate(bordered),
      await line(4).getByText('matches nothing').evaluate(coloured),
    )
    await page.getByRole('button', { name: 'Match nothing 1' }).click()
    await line(6).waitFor({ state: 'detached' })
    assert.equal(await page.locator('.policy-line').count(), 1)
  })

  it('is led to by the reasons of a refusal, with the keyboard alone', async () => {
    await start(POLICY)
    await enter(page, `${gateway.url}/#/tool?id=up:pay&as=guest`, 'demo-owner')
    await page.getByRole('link', { name: 'policy[0].deny[0]' }).first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Policy' }).waitFor()
    await page.locator('.policy-line.target:focus').waitFor()
    assert.equal(await page.locator('.policy-line.target').getAttribute('id'), `line-${FIRST + 6}`)
  })

  it('says who loses what and which calls would have ended otherwise, by the keyboard, and writes nothing', async () => {
    await start(POLICY)
    await callAll()
    await openPage()
    await page.getByRole('button', { name: 'Edit' }).focus()
    await page.keyboard.press('Enter')
    await editor().fill(TIGHTER)
    await editor().focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const access = page.getByRole('region', { name: 'Who gains and who loses' })
    assert.match(await access.getByRole('row').filter({ hasText: 'guest' }).innerText(), /guest\s+–\s+up:look\s+–/)
    const calls = page.getByRole('region', { name: 'Calls that would end otherwise' })
    assert.match(
      await calls.getByRole('row').filter({ hasText: 'guest' }).innerText(),
      /up:look\s+deny instead of allow\s+1/,
    )
    assert.equal(readFileSync(file, 'utf8'), fileOf(upstream.url, POLICY))
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    assert.equal(readFileSync(await saved.path(), 'utf8'), TIGHTER)
  })

  for (const [answer, old, draft, says] of [
    ['yes', POLICY, TIGHTER, /yes\s+Every possible call of every possible caller/],
    ['no', POLICY, LOOSER, /no\s+Some call[^]*guest: a call of up:pay would be allow and is deny today\./],
    [
      'unknown',
      READING,
      READING.replace("'xy'", "'xz'"),
      /unknown\s+No counterexample[^]*: unknown for 1 tool \(up:look\), because conditions over inputs or runs differ\./,
    ],
  ] as const)
    it(`says whether it grants no more than today: ${answer}`, async () => {
      await start(old)
      await openPage()
      await page.getByRole('button', { name: 'Edit' }).click()
      await editor().fill(draft)
      await ask()
      const grants = page.getByRole('region', { name: 'Grants no more than today' })
      await grants.locator('.badge').waitFor()
      assert.match(await grants.innerText(), says)
      await checkPage(page, 'the comparison')
      await takePicture(page, `policy-grants-${answer}`)
    })

  it('shows each mistake with its line and column, as "check" does, and leads there', async () => {
    await start(POLICY)
    await openPage()
    await page.getByRole('button', { name: 'Edit' }).click()
    await editor().fill(POLICY.replace('unless:', 'unles:'))
    await ask()
    const place = page.getByRole('button', { name: /^Line 15, column \d+$/ })
    await place.waitFor()
    assert.match(await page.getByRole('alert').filter({ has: place }).innerText(), /policy\[0\]\.deny\[0\]\.unles: /)
    await place.click()
    const at = await editor().evaluate((field) => (field as HTMLTextAreaElement).selectionStart)
    assert.match(POLICY.slice(0, at).split('\n').at(-1) ?? '', /match: "up:pay", $/)
  })

  it('applies what the file says, after it has shown that, with a record', async () => {
    await start(POLICY)
    await openPage()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('button', { name: 'Check the file' }).click()
    await page.getByText('The file says what is in force.').waitFor()
    write(TIGHTER)
    await page.getByRole('button', { name: 'Check the file' }).click()
    await page.getByText('This would change:').waitFor()
    assert.match(await page.getByRole('group', { name: 'Changes' }).innerText(), /guest loses up:look/)
    assert.doesNotMatch(await page.getByRole('group', { name: 'Changes' }).innerText(), /restart/)
    await page.getByRole('button', { name: 'Apply the file' }).click()
    await page.getByText('Applied: revision 2.').waitFor()
    // Nobody has changed the text, so it is no draft of what was in force.
    await page.waitForFunction(
      (text) => document.querySelector<HTMLTextAreaElement>('textarea.code')?.value.trimEnd() === text,
      TIGHTER.trimEnd(),
    )
    assert.equal(await page.getByRole('button', { name: 'Discard' }).count(), 0)
    await page.getByRole('link', { name: 'Its record' }).click()
    await page.getByRole('row').filter({ hasText: 'config_changed' }).filter({ hasText: 'vera' }).waitFor()
  })

  it('applies nothing that nobody has seen: it shows the new preview of a file that changed meanwhile', async () => {
    await start(POLICY)
    await openPage()
    await page.getByRole('button', { name: 'Edit' }).click()
    write(TIGHTER)
    await page.getByRole('button', { name: 'Check the file' }).click()
    await page.getByText('This would change:').waitFor()
    write(LOOSER)
    await page.getByRole('button', { name: 'Apply the file' }).click()
    await page.getByText('Nothing was applied: the file, or the configuration in force').waitFor()
    assert.match(await page.getByRole('group', { name: 'Changes' }).innerText(), /guest gains up:pay/)
    await checkPage(page, 'the new preview')
    await page.getByRole('button', { name: 'Apply the file' }).click()
    await page.getByText('Applied: revision 2.').waitFor()
  })

  it('does not take an edit of a policy that the file no longer has, or that is redacted', async () => {
    await start(POLICY)
    await openPage()
    await page.getByRole('button', { name: 'Edit' }).click()
    write(TIGHTER)
    await ask()
    await page.getByText('as it is in force; reload the file first').waitFor()
    await page.context().close()
    await gateway.close()
    ;({ page } = await stage.open())
    await start(POLICY.replace('Clerks pay.', 'Not with api_key=sk-live-0123456789abcdefghijklmnop'))
    await openPage()
    await page.getByText('Some of it is redacted, so it can be changed in the file only.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0)
    assert.ok(!(await page.content()).includes('0123456789abcdef'))
  })

  it('lists the revisions, goes back to one after a preview, and uses the policy of the file again', async () => {
    await start(POLICY)
    await openPage()
    write(TIGHTER)
    await reload()
    await page.getByRole('button', { name: 'Revisions' }).click()
    await page.getByRole('link', { name: 'Revision 1' }).focus()
    await page.keyboard.press('Enter')
    const one = page.getByRole('region', { name: 'Revision 1', exact: true })
    assert.match(await one.getByRole('group', { name: 'From revision 2 to revision 1' }).innerText(), /mode: shadow/)
    await checkForms(page, 'the revisions')
    await one.getByRole('button', { name: 'Go back to this one…' }).click()
    await one.getByText('This would change:').waitFor()
    assert.match(await one.getByRole('group', { name: 'Changes' }).innerText(), /guest gains up:look/)
    assert.equal(await page.getByText('in place of the policy of the file').count(), 0)
    await one.getByRole('button', { name: 'Go back to revision 1' }).click()
    await one.getByText('It is in force.').waitFor()
    await page.getByText('Revision 1 applies in place of the policy of the file, restored by vera').waitFor()
    await page.getByRole('row').filter({ hasText: 'went back to revision 1' }).getByText('in force').waitFor()
    await checkForms(page, 'a restored policy')
    await page.getByRole('button', { name: 'Use the file’s policy' }).click()
    await page.getByText('in place of the policy of the file').waitFor({ state: 'detached' })
  })

  it('says on the start page that a restored policy applies, and by whom', async () => {
    await start(POLICY)
    write(TIGHTER)
    await reload()
    await post('/api/policy/revisions/1', {})
    await enter(page, `${gateway.url}/#/overview`, 'demo-owner')
    const trouble = page.getByRole('listitem').filter({ hasText: "applies in place of the file's, restored by vera" })
    assert.match(await trouble.innerText(), /since .*After .*by vera/s)
    await trouble.getByRole('link').first().click()
    await page.getByRole('region', { name: 'Revisions' }).waitFor()
  })

  it('shows people without the role the clauses, and no text', async () => {
    await start(POLICY)
    await openPage('demo-looker')
    await page.getByText('files#deny[0]').waitFor()
    assert.equal(await page.locator('.policy-line').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0)
  })

  it('holds few of 2,000 lines, and edits them', async () => {
    const clauses = Array.from(
      { length: 2000 },
      (_, i) => `      - { match: "up:pay", when: "caller.user == 'u${i}'" }`,
    )
    await start(`policy:\n  - name: long\n    allow: ["*"]\n    deny:\n${clauses.join('\n')}\n`)
    await openPage()
    await line(3).waitFor()
    assert.ok((await page.locator('.policy-line').count()) < 150)
    await page.goto(`${gateway.url}/#/policy?at=policy[0].deny[1500]`)
    await page.locator('.policy-line.target:focus').waitFor()
    assert.match(await page.locator('.policy-line.target').innerText(), /'u1500'.*long#deny\[1500\]/s)
    await page.getByRole('button', { name: 'Edit' }).click()
    assert.equal((await editor().inputValue()).split('\n').length, 2004)
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await start(POLICY)
    await callAll()
    await openPage()
    await checkForms(page, 'the policy')
    await page.getByRole('button', { name: 'Edit' }).click()
    await editor().fill(POLICY.replace('unless:', 'unles:'))
    await ask()
    await page.getByRole('button', { name: /^Line 15/ }).waitFor()
    await checkForms(page, 'mistakes in the policy')
    await editor().fill(TIGHTER)
    await ask()
    await page.getByRole('region', { name: 'Calls that would end otherwise' }).waitFor()
    write(TIGHTER)
    await page.getByRole('button', { name: 'Check the file' }).click()
    await page.getByText('This would change:').waitFor()
    await checkForms(page, 'what would change')
  })

  async function start(policy: string): Promise<void> {
    write(policy)
    gateway = await stage.keep(startGateway(loadConfig(file), { consoleDir: stage.consoleDir }))
    await gateway.ready
  }

  /** A guest looks once and pays twice, which is refused; a clerk pays. */
  async function callAll(): Promise<void> {
    for (const [key, tool] of [
      ['demo-guest', 'up:look'],
      ['demo-guest', 'up:pay'],
      ['demo-guest', 'up:pay'],
      ['demo-clerk', 'up:pay'],
    ] as const)
      await send(`${gateway.url}/api/call`, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ tool, input: {} }),
      })
  }

  const reload = () => post('/api/reload', {})

  async function post(path: string, body: object): Promise<void> {
    const headers = { authorization: 'Bearer demo-owner', 'content-type': 'application/json' }
    const answer = await send(`${gateway.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    assert.equal(answer.status, 200)
  }

  async function openPage(key = 'demo-owner'): Promise<void> {
    await enter(page, `${gateway.url}/#/policy`, key)
    await page.getByRole('heading', { level: 1, name: 'Policy' }).waitFor()
    await page.getByRole('group', { name: 'Clauses' }).waitFor()
  }
})

function bordered(element: Element): string {
  return getComputedStyle(element).borderLeftColor
}

function coloured(element: Element): string {
  return getComputedStyle(element).color
}

function fileOf(url: string, policy: string): string {
  return `servers:
  up: { url: ${JSON.stringify(url)} }
callers:
  - { key: demo-guest, user: guest, roles: [guest] }
  - { key: demo-clerk, user: clerk, roles: [clerk] }
  - { key: demo-owner, for: console, user: vera, roles: [approver] }
  - { key: demo-looker, for: console, user: bob, roles: [] }
state: { store: memory }
${policy}listen: { port: 0 }
audit: { store: memory }
`
}
