import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { loadConfig, type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import type { ApprovalsBody, GrantsBody } from '../../gateway/src/model/rows.ts'
import { tempFolder } from '../../../tests/support/gateway.ts'
import { send } from '../../../tests/support/http.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { toMessage } from '../../../tests/support/rpc.ts'
import { checkForms, enter, press } from './browser.ts'
import { describeConsole } from './suite.ts'

const PAYMENT = {
  type: 'object',
  required: ['to'],
  properties: {
    to: { type: 'string', description: 'Who gets it.' },
    amount: { type: 'number' },
    note: { type: 'string' },
  },
} as const

describeConsole('deciding in the inbox', (stage) => {
  let folder: ReturnType<typeof tempFolder>
  let bank: RecordingServer
  let gateway: RunningGateway
  let page: Page
  let notifyUrl = ''

  beforeEach(async () => {
    folder = tempFolder()
    const tools = ['pay', 'refund', 'wire', 'book'].map((name) => ({ name, inputSchema: PAYMENT }))
    bank = await startRecordingServer(tools, { era: 'modern' })
    const refuses = createServer((_, answer) => answer.writeHead(410).end('gone for good'))
    refuses.listen(0, '127.0.0.1')
    await once(refuses, 'listening')
    await stage.keep({ close: () => refuses.close() })
    notifyUrl = `http://127.0.0.1:${(refuses.address() as AddressInfo).port}/`
    const file = join(folder.path, 'toolgate.yaml')
    writeFileSync(file, fileOf(bank.url, notifyUrl))
    gateway = await stage.keep(startGateway(loadConfig(file), { consoleDir: stage.consoleDir }))
    await gateway.ready
  })
  afterEach(async () => {
    await bank.close()
    folder.remove()
  })

  it('approves equal calls, in words that say what is granted, and revokes the grant', async () => {
    await call('pay', { to: 'bob@corp', amount: 150 })
    await open('demo-olga')
    await detail().getByRole('button', { name: 'Approve equal calls…' }).click()
    const dialog = page.getByRole('dialog')
    const words = dialog.locator('.grant-words')
    assert.match(await words.innerText(), /^ann may call bank:pay with exactly this input, 10 more times until /)
    await dialog.getByLabel('calls that differ in some fields only').check()
    assert.match(await words.innerText(), /^Choose at least one field/)
    await dialog.getByLabel('amount', { exact: true }).selectOption('upTo')
    await dialog.getByLabel('The most of amount').fill('149')
    await words.getByText('The bound of amount must be at least 150, which you approve.').waitFor()
    await dialog.getByRole('button', { name: 'Approve and grant' }).click()
    await dialog.getByRole('alert').getByText('at least 150').waitFor()
    await dialog.getByLabel('The most of amount').fill('200')
    await dialog.getByLabel('How many more calls').fill('2')
    assert.match(
      await words.innerText(),
      /^ann may call bank:pay with to = "bob@corp", amount up to 200 and everything else as in this call, 2 more times until \d/,
    )
    await checkForms(page, 'granting equal calls', [1440])
    await dialog.getByRole('button', { name: 'Approve and grant' }).click()
    await detail().getByText('The call can run once.').waitFor()
    assert.equal(await call('pay', { to: 'bob@corp', amount: 150 }), 'done')
    assert.equal(await call('pay', { to: 'bob@corp', amount: 199 }), 'done')
    assert.equal(await call('pay', { to: 'bob@corp', amount: 201 }), 'waiting')
    await page.getByRole('link', { name: 'Grants' }).click()
    const grant = page.locator('.grants li')
    await grant.getByText(/amount from 0 to 200, 1 more time \(of 2\) until/).waitFor()
    await checkForms(page, 'the grants')
    await grant.getByRole('button', { name: 'Revoke the grant of bank:pay to ann' }).click()
    await page.getByText('No grant is live').waitFor()
    assert.equal(await call('pay', { to: 'bob@corp', amount: 120 }), 'waiting')
    const { grants } = (await api('/api/grants')) as GrantsBody
    assert.deepEqual(
      grants.map(({ status, revokedBy }) => [status, revokedBy]),
      [['revoked', 'olga']],
    )
  })

  it('shows who of several people has approved, and takes one’s own approval back', async () => {
    await call('wire', { to: 'bob', amount: 5000 })
    await open('demo-olga')
    await page.locator('.request').getByText('0 of 2').waitFor()
    await detail().getByLabel('Reason').fill('checked with finance')
    await press(detail().getByRole('button', { name: 'Approve bank:wire' }))
    await detail().getByText('You have approved it. It waits for others.').waitFor()
    await detail().getByText('olga approved').waitFor()
    await page.locator('.request').getByText('1 of 2').waitFor()
    assert.equal(
      await detail()
        .getByRole('button', { name: /^Approve/ })
        .count(),
      0,
    )
    await checkForms(page, 'one of two approvals')
    await press(detail().getByRole('button', { name: 'Take back the approval of bank:wire' }))
    await page.locator('.request').getByText('0 of 2').waitFor()
    await press(detail().getByRole('button', { name: 'Approve bank:wire' }))
    await detail().getByText('You have approved it. It waits for others.').waitFor()
    await open('demo-otto')
    await detail().getByText('olga approved').waitFor()
    await press(detail().getByRole('button', { name: 'Approve bank:wire' }))
    await detail().getByText('The call can run once.').waitFor()
    assert.equal(await call('wire', { to: 'bob', amount: 5000 }), 'done')
  })

  it('changes fields, shows from what to what, and the call runs so', async () => {
    await call('refund', { to: 'bob', amount: 150, note: 'x' })
    await open('demo-olga')
    await detail().getByRole('button', { name: 'Change the input…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Nothing is changed yet.').waitFor()
    await dialog.getByLabel('amount optional').fill('100')
    await dialog.getByLabel('note optional').fill('')
    assert.deepEqual(await dialog.locator('.changes li').allInnerTexts(), ['amount: 150 → 100', 'note: "x" → absent'])
    await checkForms(page, 'changing an input', [1440])
    await dialog.getByRole('button', { name: 'Approve with these changes' }).click()
    await detail().getByText('olga changed the input.').waitFor()
    await call('refund', { to: 'bob', amount: 150, note: 'x' })
    assert.deepEqual(
      bank.calls('refund').map(({ params }) => params['arguments']),
      [{ to: 'bob', amount: 100 }],
    )
  })

  it('sends the change of the first approver with the second approval', async () => {
    await call('book', { to: 'bob', amount: 5000 })
    await open('demo-olga')
    await detail().getByRole('button', { name: 'Change the input…' }).click()
    await page.getByRole('dialog').getByLabel('amount optional').fill('4000')
    await page.getByRole('dialog').getByRole('button', { name: 'Approve with these changes' }).click()
    await detail().getByText('You have approved it. It waits for others.').waitFor()
    await open('demo-otto')
    await detail().getByText('olga changed the input. You approve the changed one.').waitFor()
    assert.equal(await detail().locator('.changes').innerText(), 'amount: 5000 → 4000')
    await press(detail().getByRole('button', { name: 'Approve bank:book' }))
    await detail().getByText('The call can run once.').waitFor()
  })

  it('decides several together, with one reason', async () => {
    for (const to of ['a', 'b', 'c', 'd']) await call('pay', { to, amount: 150 })
    await open('demo-olga')
    await page.locator('.request').nth(3).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('x')
    const bar = page.getByRole('group', { name: 'The selected requests' })
    await bar.getByText('2 selected requests').waitFor()
    await bar.getByLabel('Reason').fill('all known')
    await checkForms(page, 'several selected')
    await press(bar.getByRole('button', { name: 'Approve all 2 selected' }))
    await bar.waitFor({ state: 'detached' })
    await page.locator('.request').getByText('approved').nth(1).waitFor()
    const { approvals } = (await api('/api/approvals?status=approved')) as ApprovalsBody
    assert.deepEqual(approvals.map(({ reason, input }) => [reason, (input as { to: string }).to]).toSorted(), [
      ['all known', 'a'],
      ['all known', 'b'],
    ])
  })

  it('opens the request that a link names, and says where to look once it is over', async () => {
    await call('pay', { to: 'first', amount: 150 })
    await call('pay', { to: 'second', amount: 150 })
    const { approvals } = (await api('/api/approvals?status=pending')) as ApprovalsBody
    const id = approvals.find(({ input }) => (input as { to: string }).to === 'second')?.id ?? ''
    await open('demo-olga', `?id=${id}`)
    await detail().getByText('"second"').waitFor()
    await open('demo-olga', '?id=gone')
    await page.getByText('This request does not wait here any more.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Open its page' }).getAttribute('href'), '/approvals/gone')
  })

  it('shows a receiver that takes no notifications, since when and why', async () => {
    await call('pay', { to: 'bob', amount: 150 })
    await open('demo-olga')
    await page
      .locator('.receivers')
      .getByText(/^ops has taken no notification since .*410/)
      .waitFor()
    await checkForms(page, 'a receiver that is gone')
  })

  function detail(): Locator {
    return page.locator('.detail')
  }

  async function open(key: string, query = ''): Promise<void> {
    ;({ page } = await stage.open({ viewport: { width: 1440, height: 900 } }))
    await enter(page, `${gateway.url}/#/approvals${query}`, key)
    await page.locator('.request').first().waitFor()
  }

  /** Makes a call as a client of MCP does, which takes changes. Returns how it ended. */
  async function call(tool: string, input: object): Promise<string> {
    const { headers, body } = toMessage('2026-07-28', 'tools/call', { name: `bank__${tool}`, arguments: input })
    const answer = await send(`${gateway.url}/mcp`, {
      headers: { ...headers, authorization: 'Bearer demo-ann' },
      body: JSON.stringify(body),
    })
    return /Waiting for approval/.test(JSON.stringify(answer)) ? 'waiting' : 'done'
  }

  async function api(path: string): Promise<unknown> {
    return (
      await send(`${gateway.url}${path}`, { method: 'GET', headers: { authorization: 'Bearer demo-olga' } })
    ).json()
  }
})

function fileOf(bank: string, notify: string): string {
  return `servers:
  bank: { url: ${bank}, per: shared }
callers:
  - { key: demo-ann, user: ann, roles: [clerk] }
  - { key: demo-olga, for: console, user: olga, roles: [approver] }
  - { key: demo-otto, for: console, user: otto, roles: [approver] }
policy:
  - name: payments
    ask:
      - { match: "bank:pay", input: "input.amount > 100", message: "More than 100 needs a person." }
      - { match: "bank:refund", edit: true, message: "A person looks at each refund." }
      - { match: "bank:wire", approvers: 2, message: "Two people approve a wire." }
      - { match: "bank:book", approvers: 2, edit: true, message: "Two people approve a booking." }
grants: { max: 8h, by: other, maxUses: 50 }
approvals: { notify: [{ url: ${notify}, format: json, name: ops }] }
audit: { store: memory }
state: { store: memory }
listen: { port: 0 }
`
}
