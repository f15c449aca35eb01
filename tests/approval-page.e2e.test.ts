import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { findChromium, launchChromium } from '../packages/console/test/chromium.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig } from './support/keys.ts'
import { startRecordingServer, type RecordingServer } from './support/recording-server.ts'
import { httpServer } from './support/servers.ts'

/** The page behind the link of an approval: who sees it, who decides, and who cannot. */

const ACME = { tenant: 'acme' }
const KEYS = {
  vera: 'vera-console',
  ann: 'ann-console',
  bob: 'bob-console',
  eve: 'eve-console',
  other: 'other-vera-console',
} as const
type Person = keyof typeof KEYS
let server: RecordingServer
let gateway: TestGateway

before(async () => {
  const inputSchema = { type: 'object' }
  server = await startRecordingServer([
    { name: 'send', inputSchema },
    { name: 'wire', inputSchema },
  ])
  gateway = await startTestGateway({
    servers: [httpServer('pay', server.url)],
    callers: [
      callerConfig('vera-agent', { user: 'vera', ...ACME }),
      callerConfig(KEYS.vera, { user: 'vera', ...ACME }, 'console'),
      callerConfig(KEYS.ann, { user: 'ann', ...ACME, roles: ['approver'] }, 'console'),
      callerConfig(KEYS.bob, { user: 'bob', ...ACME }, 'console'),
      callerConfig(KEYS.other, { user: 'vera', tenant: 'evil' }, 'console'),
      callerConfig(KEYS.eve, { user: 'eve', tenant: 'evil', roles: ['approver'] }, 'console'),
    ],
    policy: [{ ask: ['pay:send', { match: 'pay:wire', by: 'other', login: '5m' }] }],
  })
})
after(async () => {
  await gateway?.close()
  await server?.close()
})

let cents = 0

/** Makes a call that waits, and returns the path of its page. */
async function ask(tool: 'send' | 'wire' = 'send'): Promise<string> {
  const view = await gateway.gate.view({ user: 'vera', ...ACME })
  const input = { cents: ++cents, note: '<b onclick="x">\u202Etxt</b>', password: 'hunter2hunter2' }
  const outcome = await view.call({ tool: `pay:${tool}`, input })
  assert.equal(outcome.status, 'waiting')
  return `/approvals/${outcome.approval.id}`
}

async function statusOf(path: string): Promise<string | undefined> {
  return (await gateway.gate.approvals.get(path.replace('/approvals/', '')))?.status
}

const FORM = 'application/x-www-form-urlencoded'

async function get(path: string, headers: Readonly<Record<string, string>> = {}) {
  return send(`${gateway.url}${path}`, { method: 'GET', headers })
}

async function post(path: string, form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) {
  const body = new URLSearchParams(form).toString()
  return send(`${gateway.url}${path}`, { headers: { 'content-type': FORM, ...headers }, body })
}

async function logIn(who: Person): Promise<string> {
  const answer = await post('/approvals/any', { key: KEYS[who] }, { origin: gateway.url })
  assert.equal(answer.status, 303)
  return String(answer.headers['set-cookie']).split(';')[0] ?? ''
}

describe('the page of an approval', () => {
  it('opens for the person who asked and for approvers of the tenant, and approves nothing', async () => {
    const path = await ask()
    for (const who of ['vera', 'ann'] as const) {
      const answer = await get(path, { cookie: await logIn(who) })
      assert.equal(answer.status, 200)
      assert.match(answer.text, /Approve this call\?/)
      assert.match(answer.text, /pay:send/)
      assert.match(answer.text, /vera of acme/)
      assert.ok(answer.text.includes(`href="/#/approvals?id=${path.split('/').at(-1)}"`), 'it leads to the console')
      assert.match(answer.text, /A rule asks for approval of it\./)
      assert.ok(!answer.text.includes('hunter2'), 'secrets are masked')
      assert.ok(!answer.text.includes('<b onclick') && !answer.text.includes('\u202E'), 'nothing is markup')
    }
    assert.equal(await statusOf(path), 'pending')
  })

  it('does not exist for others: the bytes are those of an unknown one', async () => {
    const path = await ask()
    for (const who of ['bob', 'eve', 'other'] as const) {
      const cookie = await logIn(who)
      const hidden = await get(path, { cookie })
      const unknown = await get('/approvals/00000000-0000-4000-8000-000000000000', { cookie })
      assert.equal(hidden.status, 404)
      const bytes = ({ text, headers }: typeof hidden) => [text, { ...headers, date: '' }]
      assert.deepEqual(bytes(hidden), bytes(unknown))
      assert.equal((await post(path, { decision: 'approve' }, { cookie, origin: gateway.url })).status, 404)
    }
    assert.equal(await statusOf(path), 'pending')
  })

  it('is the same login for every link, known or not', async () => {
    const known = await get(await ask())
    const unknown = await get('/approvals/none')
    assert.deepEqual([known.status, known.text], [401, unknown.text])
  })

  it('takes an approval from its own page only', async () => {
    const path = await ask()
    const cookie = await logIn('vera')
    const approve = { decision: 'approve' }
    for (const headers of [
      {},
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: gateway.url, 'sec-fetch-site': 'cross-site' },
      { origin: gateway.url, 'sec-fetch-site': 'same-site' },
      { origin: gateway.url, 'sec-fetch-site': 'none' },
    ])
      assert.equal((await post(path, approve, { cookie, ...headers })).status, 403, JSON.stringify(headers))
    const asJson = { cookie, origin: gateway.url, 'content-type': 'application/json' }
    assert.equal((await post(path, approve, asJson)).status, 403)
    assert.equal((await get(`${path}?decision=approve`, { cookie, origin: gateway.url })).status, 200)
    assert.equal(await statusOf(path), 'pending')
    const answer = await post(path, approve, { cookie, origin: gateway.url, 'sec-fetch-site': 'same-origin' })
    assert.deepEqual([answer.status, answer.headers.location], [303, path])
    assert.equal(await statusOf(path), 'approved')
  })

  it('cannot be framed, runs no script and is not kept', async () => {
    for (const answer of [await get(await ask()), await get(await ask(), { cookie: await logIn('vera') })]) {
      const policy = String(answer.headers['content-security-policy'])
      assert.match(policy, /default-src 'none'.*form-action 'self'; frame-ancestors 'none'/)
      assert.deepEqual([answer.headers['x-frame-options'], answer.headers['cache-control']], ['DENY', 'no-store'])
      assert.ok(!answer.text.includes('<script'))
    }
  })

  it('does not take the key of an agent, or a wrong one', async () => {
    for (const key of ['vera-agent', 'wrong', ''])
      assert.notEqual((await post(await ask(), { key }, { origin: gateway.url })).status, 303, key)
  })

  it('wants another person and a fresh login where the policy says so', async () => {
    const path = await ask('wire')
    const vera = await logIn('vera')
    assert.match((await get(path, { cookie: vera })).text, /Another person must approve it/)
    assert.equal((await post(path, { decision: 'approve' }, { cookie: vera, origin: gateway.url })).status, 403)
    // The key of another person beside her own session approves nothing either.
    const borrowed = { decision: 'approve', key: KEYS.ann }
    assert.equal((await post(path, borrowed, { cookie: vera, origin: gateway.url })).status, 403)
    assert.equal(await statusOf(path), 'pending')
    const ann = await logIn('ann')
    assert.equal((await post(path, { decision: 'approve' }, { cookie: ann, origin: gateway.url })).status, 303)
    assert.equal(await statusOf(path), 'approved')
  })
})

const executablePath = findChromium()

if (executablePath !== undefined)
  describe('the page of an approval in a browser', () => {
    let browser: Browser
    before(async () => {
      browser = await launchChromium(executablePath)
    })
    after(() => browser?.close())

    it('logs in and approves', async () => {
      const path = await ask()
      const page = await (await browser.newContext()).newPage()
      const problems: string[] = []
      page.on('console', (message) => {
        // The answer before the login is 401.
        if (message.type() === 'error' && !message.text().includes('401')) problems.push(message.text())
      })
      await page.goto(`${gateway.url}${path}`)
      await page.getByLabel('Console key').fill(KEYS.vera)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('heading', { name: 'Approve this call?' }).waitFor()
      await page.screenshot({ path: process.env['SCREENSHOT'] ?? '/tmp/approval-page.png' })
      await page.getByLabel('Reason').fill('as agreed')
      await page.getByLabel('Reason').press('Enter')
      await page.waitForTimeout(100)
      assert.equal(await statusOf(path), 'pending')
      await page.getByRole('button', { name: 'Approve this call once' }).click()
      await page.getByRole('heading', { name: 'This call is approved' }).waitFor()
      assert.equal(await statusOf(path), 'approved')
      assert.deepEqual(problems, [])
      await page.close()
    })

    it('opens with the session when the link is on another site', async () => {
      const path = await ask()
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(`${gateway.url}${path}`)
      await page.getByLabel('Console key').fill(KEYS.ann)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('heading', { name: 'Approve this call?' }).waitFor()
      await page.goto(`data:text/html,<a href="${gateway.url}${path}">link</a>`)
      await page.getByRole('link').click()
      await page.getByRole('heading', { name: 'Approve this call?' }).waitFor()
      await page.close()
    })

    it('stays out of a frame', async () => {
      const page = await browser.newPage()
      const path = await ask()
      await page.setContent(`<iframe src="${gateway.url}${path}"></iframe>`)
      await page.waitForTimeout(300)
      const frame = page.frames()[1]
      assert.ok(!(await frame?.content())?.includes('Console key'))
      await page.close()
    })
  })
