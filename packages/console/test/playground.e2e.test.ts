import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { GatewayConfig, RunningGateway } from '../../gateway/src/index.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { Witness } from '../../../tests/support/items-witness.ts'
import { hostModern } from '../../../tests/support/mcp-host.ts'
import { callerConfig } from '../../../tests/support/keys.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { checkForms, checkPage, enter } from './browser.ts'
import { keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('the playground of a tool', (stage) => {
  let upstream: RecordingServer
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    upstream = await stage.keep(startRecordingServer([{ name: 'pay', description: 'Pays.', inputSchema: PAY }]))
    const files = await stage.keep(hostModern(new Witness().answer))
    gateway = await keepGateway(stage, configOf(upstream.url, files.url))
    ;({ page } = await stage.open())
  })

  const part = () => page.locator('section.part').filter({ has: page.getByRole('heading', { name: 'Playground' }) })
  const latest = () => part().locator('.dry-run').first()
  const dryRun = () => part().getByRole('button', { name: 'Dry run' }).click()

  it('says which rule decides, and how with another input, and runs nothing', async () => {
    await openAs('demo-owner', 'bob')
    await part().getByLabel('to', { exact: true }).fill('ann')
    await part().getByLabel('amount', { exact: true }).fill('5')
    await dryRun()
    await latest().getByText('A call with this input would run. Nothing was run.').waitFor()
    await part().getByLabel('amount', { exact: true }).fill('500')
    await dryRun()
    await latest().getByText('It would be refused. Nothing was run.').waitFor()
    await latest().getByText('input_denied').waitFor()
    await latest().getByText('It would be allowed with one of these:').waitFor()
    await latest().getByRole('listitem').filter({ hasText: 'payments#deny[0] removed, or narrowed' }).waitFor()
    await latest().getByText('Message to the caller: “Too much.”').waitFor()
    await part().getByLabel('amount', { exact: true }).fill('50')
    await dryRun()
    await latest().getByText('A person would be asked first. Nothing was run.').waitFor()
    const earlier = part().getByRole('list', { name: 'Earlier inputs' }).getByRole('listitem')
    assert.match(
      (await earlier.allInnerTexts()).join('|'),
      /^deny\s+\{"to":"ann","amount":500\}[^|]*\|allow\s+\{"to":"ann","amount":5\}/,
    )
    assert.deepEqual(upstream.calls(), [])
  })

  it('judges a call after a stated history, and names what is wrong with one', async () => {
    await openAs('demo-owner', 'bob')
    await part().getByLabel('to', { exact: true }).fill('ann')
    await part().getByLabel('amount', { exact: true }).fill('7')
    await dryRun()
    await latest().getByText('A call with this input would run. Nothing was run.').waitFor()
    await part().getByText('What happened before').press('Enter')
    const history = part().getByLabel('History of the run, as YAML')
    await history.fill('labels: [untrusted]\ncalls:\n  - tool: up:pya')
    await dryRun()
    await part().getByText('history:3:11: calls[0].tool: unknown tool "up:pya"; did you mean "up:pay"?').waitFor()
    assert.equal(await history.getAttribute('aria-invalid'), 'true')
    await history.fill('labels: [untrusted]')
    await dryRun()
    await latest()
      .getByText('It would be refused. Nothing was run. It was judged after what you have stated.')
      .waitFor()
    await latest()
      .getByText(/^Layers that allow it: .*scopes/)
      .waitFor()
    await checkPage(page, 'a dry run with a history')
    await history.fill('')
    await dryRun()
    await latest().getByText('A call with this input would run. Nothing was run.').waitFor()
    assert.deepEqual(upstream.calls(), [])
  })

  it('shows each mistake beside its field, and what the gateway finds too', async () => {
    await openAs('demo-owner', 'vera')
    await part().getByLabel('amount', { exact: true }).fill('much')
    await dryRun()
    const amount = part().getByLabel('amount', { exact: true })
    assert.equal(await amount.getAttribute('aria-invalid'), 'true')
    assert.match(await amount.evaluate(describedBy), /This must be a number\./)
    await amount.fill('-1')
    await part().getByLabel('to', { exact: true }).fill('ann')
    await dryRun()
    await latest().getByText('It would be refused.').waitFor()
    assert.match(await amount.evaluate(describedBy), /0/)
  })

  it('has fields for objects, lists, choices and flags, and JSON for the rest', async () => {
    await openAs('demo-owner', 'vera')
    await part().getByLabel('to', { exact: true }).fill('ann\nbob')
    await part().getByLabel('amount', { exact: true }).fill('1')
    await part().getByLabel('urgent').selectOption('true')
    await part().getByLabel('currency').selectOption('CHF')
    const tags = part().getByRole('group', { name: 'tags' })
    await tags.getByRole('button', { name: 'Add to tags' }).click()
    await tags.getByLabel('tags 1').fill('rent')
    await tags.getByRole('button', { name: 'Add to tags' }).click()
    await tags.getByRole('button', { name: 'Remove tags 2' }).click()
    await part().getByRole('group', { name: 'bank' }).getByLabel('iban').fill('CH1')
    await part().getByLabel('extra').fill('{')
    await dryRun()
    await part().getByText('This is not JSON').waitFor()
    await part().getByLabel('extra').fill('[1, {"a": null}]')
    await part().getByRole('button', { name: 'As JSON' }).click()
    assert.deepEqual(JSON.parse(await part().getByLabel('Input, as JSON').inputValue()), {
      to: 'ann\nbob',
      amount: 1,
      urgent: true,
      currency: 'CHF',
      tags: ['rent'],
      bank: { iban: 'CH1' },
      extra: [1, { a: null }],
    })
    await part().getByLabel('Input, as JSON').fill('[]')
    await dryRun()
    await part().getByText('The input must be a JSON object.').waitFor()
  })

  it('makes a real call as an agent of one’s own after asking, with the keyboard alone, and the audit has it', async () => {
    await openAs('demo-owner', 'vera')
    await part().getByLabel('to', { exact: true }).focus()
    await page.keyboard.type('ann')
    await page.keyboard.press('Tab')
    await page.keyboard.type('7')
    await part().getByRole('button', { name: 'Call it…' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Call the tool' })
    await dialog.getByText('This runs up:pay now, as vera.').waitFor()
    assert.match(await dialog.getByRole('group', { name: 'The input' }).innerText(), /"amount": 7/)
    assert.deepEqual(upstream.calls(), [])
    await dialog.getByRole('button', { name: 'Call it now' }).focus()
    await page.keyboard.press('Enter')
    await dialog.getByRole('group', { name: 'The result' }).waitFor()
    assert.deepEqual(
      upstream.calls().map(({ params }) => params['arguments']),
      [{ to: 'ann', amount: 7 }],
    )
    await checkPage(page, 'the result')
    await dialog.getByRole('link', { name: 'Its records' }).click()
    await page.getByRole('row').filter({ hasText: 'tool_call' }).filter({ hasText: 'vera' }).first().waitFor()
  })

  it('offers no call as another user, and none to a person without the role', async () => {
    await openAs('demo-owner', 'bob')
    await part().getByText('You can call it as one of your own agents only: see as vera').waitFor()
    assert.equal(await part().getByRole('button', { name: 'Call it…' }).count(), 0)
    await part().getByRole('link', { name: 'see as vera' }).click()
    await part().getByRole('button', { name: 'Call it…' }).waitFor()
    await page.context().close()
    ;({ page } = await stage.open())
    await openAs('demo-looker', 'bob')
    await part().getByText('A real call takes the role operator or approver').waitFor()
    assert.equal(await part().getByRole('button', { name: 'Call it…' }).count(), 0)
  })

  it('says that a call waits for a person, and leads to the approvals', async () => {
    await openAs('demo-owner', 'vera')
    await part().getByLabel('to', { exact: true }).fill('ann')
    await part().getByLabel('amount', { exact: true }).fill('50')
    await part().getByRole('button', { name: 'Call it…' }).click()
    await page.getByRole('button', { name: 'Call it now' }).click()
    await page.getByRole('link', { name: 'A person must approve it' }).click()
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor()
    assert.deepEqual(upstream.calls(), [])
  })

  it('reads resources, fills in templates, and gets prompts with arguments', async () => {
    const read = async (id: string, kind: string, fill: () => Promise<void>): Promise<string> => {
      await page.goto(`${gateway.url}/#/tool?id=${encodeURIComponent(id)}&as=vera`)
      await page.getByRole('heading', { level: 1, name: id }).waitFor()
      await fill()
      await dryRun()
      await latest().getByText('A call with this input would run.').waitFor()
      await part().getByRole('button', { name: 'Call it…' }).click()
      const dialog = page.getByRole('dialog', { name: `Call the ${kind}` })
      await dialog.getByRole('button', { name: 'Call it now' }).click()
      return dialog.getByRole('group', { name: 'The result' }).innerText()
    }
    await openAs('demo-owner', 'vera')
    assert.match(await read('resource:files:file:///work/a.txt', 'resource', async () => {}), /content of/)
    const template = async () => part().getByLabel('uri').fill('file:///work/b.txt')
    assert.match(await read('resource:files:file:///work/{name}', 'template', template), /b\.txt/)
    const prompt = async () => part().getByLabel('who').fill('Ann')
    assert.match(await read('prompt:files:greet', 'prompt', prompt), /Hello Ann/)
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await openAs('demo-owner', 'vera')
    await part().getByLabel('to', { exact: true }).fill('ann')
    await part().getByRole('group', { name: 'tags' }).getByRole('button', { name: 'Add to tags' }).click()
    for (const amount of ['5', '500', '-1']) {
      await part().getByLabel('amount', { exact: true }).fill(amount)
      await Promise.all([page.waitForResponse(/api\/why/), dryRun()])
    }
    await part().getByRole('list', { name: 'Earlier inputs' }).getByRole('listitem').nth(1).waitFor()
    await checkForms(page, 'the playground')
    await part().getByLabel('amount', { exact: true }).fill('5')
    await part().getByRole('button', { name: 'Call it…' }).click()
    await page.getByRole('button', { name: 'Call it now' }).click()
    await page.getByRole('group', { name: 'The result' }).waitFor()
    await checkForms(page, 'the result of a call')
  })

  async function openAs(key: string, as: string): Promise<void> {
    await enter(page, `${gateway.url}/#/tool?id=up:pay&as=${as}`, key)
    await part().getByRole('button', { name: 'Dry run' }).waitFor()
  }
})

/** Returns the texts that describe a field. */
function describedBy(element: Element): string {
  const ids = element.getAttribute('aria-describedby')?.split(' ') ?? []
  return ids.map((id) => document.getElementById(id)?.textContent ?? '').join(' ')
}

const PAY = {
  type: 'object',
  properties: {
    to: { type: 'string', description: 'Whom.' },
    amount: { type: 'number', minimum: 0, description: 'How much.' },
    urgent: { type: 'boolean' },
    currency: { enum: ['EUR', 'CHF'] },
    tags: { type: 'array', items: { type: 'string' } },
    bank: { type: 'object', properties: { iban: { type: 'string' } } },
    extra: { description: 'Anything.' },
  },
  required: ['to', 'amount'],
}

function configOf(url: string, filesUrl: string): Partial<GatewayConfig> {
  return {
    servers: [httpServer('up', url), httpServer('files', filesUrl, { offers: ['resources', 'prompts'] })],
    callers: [
      callerConfig('demo-vera', { user: 'vera', roles: ['clerk'] }),
      callerConfig('demo-bob', { user: 'bob', roles: ['clerk'] }),
      callerConfig('demo-owner', { user: 'vera', roles: ['approver'] }, 'console'),
      callerConfig('demo-looker', { user: 'bob', roles: [] }, 'console'),
    ],
    policy: [
      {
        name: 'payments',
        allow: ['*', 'resource:*:*', 'prompt:*:*'],
        deny: [
          { match: 'up:pay', input: 'input.amount >= 100', message: 'Too much.' },
          { match: 'up:pay', input: "input.amount == 7 && 'untrusted' in run.labels" },
        ],
        ask: [{ match: 'up:pay', input: 'input.amount >= 50' }],
      },
    ],
  }
}
