import type { Locator, Page } from 'playwright-core'
import type { Page as PageName } from '../src/address.ts'
import { LONG_NAME } from './payments.ts'

/** A state of a page that a person can bring about. */
export interface View {
  readonly name: string
  /** The address after `#/`. */
  readonly address: string
  /** Shows that the page is ready. */
  readonly ready: string
  /** The parts in `src` with dialogs, drawers and folded texts that are open here. */
  readonly shows?: readonly string[]
  /** Brings the state about with the keyboard alone, from the page at the address. */
  readonly open?: (page: Page) => Promise<void>
  /** The widths at which it is looked at. Default: all. */
  readonly widths?: readonly number[]
  /** It is over the page: Escape closes it, and the focus returns. */
  readonly isModal?: boolean
}

/** The widths at which a request is beside its list. */
const WIDE = [1440]

/** Every page, with every dialog, drawer and folded part. A page that is not here does not compile. */
export const VIEWS: Readonly<Record<PageName | 'login', readonly View[]>> = {
  login: [
    {
      name: 'the login',
      address: 'overview',
      ready: '.figures',
      async open(page) {
        await page.context().clearCookies()
        await page.reload()
        await page.getByLabel('Console key').fill('wrong')
        await page.keyboard.press('Enter')
        await page.getByRole('alert').waitFor()
      },
    },
    {
      name: 'the end of a session',
      address: 'tools?as=bert',
      ready: '.tool',
      shows: ['pages/login.tsx'],
      async open(page) {
        await page.context().clearCookies()
        await press(page.getByRole('link', { name: 'Policy' }))
        await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
      },
    },
  ],
  tools: [
    { name: 'the tools', address: 'tools?as=bert', ready: '.tool' },
    {
      name: 'the instances of a server',
      address: 'tools?as=bert&q=own',
      ready: '.tool',
      shows: ['parts/tool-listing.tsx'],
      open: (page) => fold(page, /instance/),
    },
    {
      name: 'the needs of an app',
      address: 'tools?as=bert&app=till',
      ready: '.tool',
      shows: ['pages/tools.tsx'],
      open: (page) => fold(page, /needs/i),
    },
    {
      name: 'a tool beside the list',
      address: 'tools?as=bert&open=payments:transfer',
      ready: '.detail .reasons',
      shows: ['parts/tool-drawer.tsx'],
    },
    { name: 'another caller', address: 'tools?caller={"user":"zoe","roles":["guest"]}', ready: '.tool' },
    { name: 'no tool of a filter', address: 'tools?as=bert&q=zzz', ready: '.panel' },
    { name: 'the resources', address: 'tools?as=bert&kind=resource', ready: '.tool' },
    {
      name: 'the palette',
      address: 'tools?as=bert',
      ready: '.tool',
      isModal: true,
      shows: ['parts/shortcuts.tsx', 'parts/palette.tsx'],
      open: openPalette,
    },
    {
      name: 'the keys',
      address: 'tools?as=bert',
      ready: '.tool',
      isModal: true,
      open: (page) => page.keyboard.press('?'),
    },
    {
      name: 'the warnings',
      address: 'tools?as=bert',
      ready: '.tool',
      shows: ['parts/notices.tsx'],
      open: (page) => fold(page, /warnings? about/),
    },
  ],
  tool: [
    { name: 'a tool', address: 'tool?id=payments:transfer&as=vera', ready: '.playground', shows: ['pages/tool.tsx'] },
    { name: 'a tool with a long name', address: `tool?id=payments:${LONG_NAME}&as=bert`, ready: '.playground' },
    { name: 'an unknown tool', address: 'tool?id=payments:none&as=bert', ready: '.panel' },
    { name: 'a prompt', address: 'tool?id=prompt:files:greet&as=vera', ready: '.playground' },
    {
      name: 'dry runs',
      address: 'tool?id=payments:refund&as=guest',
      ready: '.playground',
      async open(page) {
        for (const amount of ['900', '1']) {
          await page.getByLabel('amount').fill(amount)
          await Promise.all([page.waitForResponse(/api\/why/), press(page.getByRole('button', { name: 'Dry run' }))])
        }
        await page.locator('.earlier-runs').waitFor()
      },
    },
    {
      name: 'a stated history',
      address: 'tool?id=payments:balance&as=vera',
      ready: '.playground',
      shows: ['parts/history-field.tsx'],
      open: (page) => fold(page, /before/),
    },
    {
      name: 'the question before a call',
      address: 'tool?id=payments:balance&as=vera',
      ready: '.playground',
      shows: ['parts/playground.tsx'],
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Call it…' })),
    },
    {
      name: 'a halt of a tool',
      address: 'tool?id=payments:balance&as=vera',
      ready: '.playground',
      shows: ['parts/halt-dialog.tsx'],
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Halt this tool…' })),
    },
  ],
  overview: [
    {
      name: 'the overview',
      address: 'overview',
      ready: 'table',
      shows: ['pages/overview.tsx'],
      open: (page) => fold(page, /stderr|line/i),
    },
  ],
  live: [
    { name: 'the live records', address: 'live', ready: '.record' },
    {
      name: 'a record',
      address: 'live?tool=payments:mails',
      ready: '.record',
      shows: ['parts/record-drawer.tsx'],
      isModal: true,
      open: (page) => press(page.locator('.record .opener').first()),
    },
    { name: 'no record', address: 'live?user=nobody', ready: '.panel' },
  ],
  calls: [
    { name: 'the calls', address: 'calls', ready: '.record' },
    {
      name: 'the suggestions of a filter',
      address: 'calls?range=from … to',
      ready: '.record',
      shows: ['parts/suggestions.tsx'],
      async open(page) {
        await page.getByLabel('Filter').fill('user:')
        await page.locator('.filter-box [role=option]').first().waitFor()
      },
    },
    {
      name: 'a call',
      address: 'calls?tool=payments:mails',
      ready: '.record',
      shows: ['parts/call-drawer.tsx'],
      isModal: true,
      open: (page) => press(page.locator('.record .opener').first()),
    },
    { name: 'no call', address: 'calls?text=zzz', ready: '.panel' },
  ],
  runs: [
    { name: 'the runs', address: 'runs', ready: '.record' },
    {
      name: 'a run',
      address: 'runs?label=untrusted',
      ready: '.record',
      shows: ['pages/runs.tsx'],
      isModal: true,
      async open(page) {
        await press(page.locator('.record .opener').first())
        await page.locator('.timeline li').first().waitFor()
      },
    },
    { name: 'no run', address: 'runs?text=zzz', ready: '.panel' },
  ],
  approvals: [
    {
      name: 'the inbox',
      address: 'approvals',
      ready: '.request',
      shows: ['parts/approval-card.tsx'],
      isModal: true,
      open: (page) => press(page.locator('.request .opener').first()),
    },
    {
      name: 'a request of a run',
      address: 'approvals',
      ready: '.approval',
      shows: ['parts/trail.tsx'],
      open: (page) => fold(page, /timeline/),
    },
    {
      name: 'granting equal calls',
      address: `approvals?tool=payments:${LONG_NAME}`,
      ready: '.request',
      shows: ['parts/grant-dialog.tsx'],
      widths: WIDE,
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Approve equal calls…' })),
    },
    {
      name: 'changing an input',
      address: `approvals?tool=payments:${LONG_NAME}`,
      ready: '.request',
      shows: ['parts/edit-dialog.tsx'],
      widths: WIDE,
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Change the input…' })),
    },
    {
      name: 'the history of approvals',
      address: 'approvals?view=history',
      ready: '.decided-row',
      shows: ['parts/approval-history.tsx'],
      open: (page) => fold(page, /rejected/),
    },
    {
      name: 'the grants',
      address: 'approvals?view=grants',
      ready: '.grants',
      shows: ['parts/grant-list.tsx'],
      open: (page) => fold(page, /must be equal/),
    },
    { name: 'no request of a filter', address: 'approvals?tool=none', ready: '.panel' },
  ],
  policy: [
    { name: 'the policy', address: 'policy', ready: '.policy-line' },
    { name: 'a clause', address: 'policy?at=policy[0].deny[0]', ready: '.policy-line.target' },
    {
      name: 'the editor',
      address: 'policy',
      ready: '.policy-line',
      async open(page) {
        await press(page.getByRole('button', { name: 'Edit' }))
        await page.locator('textarea.code').waitFor()
      },
    },
    {
      name: 'mistakes in the policy',
      address: 'policy',
      ready: '.policy-line',
      async open(page) {
        await edit(page, (text) => text.replace('input:', 'inptu:'))
        await page.getByRole('button', { name: /^Line \d+/ }).waitFor()
      },
    },
    {
      name: 'a draft',
      address: 'policy',
      ready: '.policy-line',
      async open(page) {
        await press(page.getByRole('button', { name: 'Edit' }))
        await page.keyboard.insertText('# ')
        await press(page.getByRole('button', { name: 'Keep the draft and close' }))
        await page.getByText('You have a draft').waitFor()
      },
    },
    {
      name: 'what would change',
      address: 'policy',
      ready: '.policy-line',
      async open(page) {
        await edit(page, (text) => text.replace(', mode: shadow', ''))
        await page.getByRole('region', { name: 'Calls that would end otherwise' }).waitFor()
      },
    },
  ],
  people: [
    { name: 'who sees what', address: 'people?view=matrix&open=server+payments', ready: '.matrix' },
    { name: 'the keys', address: 'people?view=keys', ready: 'tbody tr' },
    {
      name: 'a new key',
      address: 'people?view=keys',
      ready: 'tbody tr',
      shows: ['parts/new-key.tsx', 'parts/form.tsx'],
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Make a key…' })),
    },
    { name: 'the people', address: 'people', ready: '.record' },
    { name: 'people of a tenant', address: 'people?tenant=acme&order=latest+call', ready: '.record' },
    { name: 'nobody', address: 'people?text=zzz', ready: '.panel' },
    {
      name: 'a person',
      address: 'people?tenant=acme',
      ready: '.record',
      shows: ['parts/person-drawer.tsx'],
      isModal: true,
      async open(page) {
        await press(page.getByRole('link', { name: 'clara', exact: true }))
        await page.locator('.detail').getByText('All runs').waitFor()
        await page.locator('.detail').getByText('clara-laptop').first().waitFor()
      },
    },
    {
      name: 'oneself, with connections',
      address: 'people?text=vera',
      ready: '.record',
      shows: ['parts/drawer.tsx'],
      isModal: true,
      async open(page) {
        await press(page.locator('.record .opener').first())
        await page.locator('.detail').getByRole('link', { name: 'Connect mail' }).waitFor()
      },
    },
  ],
  servers: [
    { name: 'the servers', address: 'servers', ready: 'tbody tr' },
    { name: 'a server', address: 'servers?server=broken', ready: '.server-log p', shows: ['pages/servers.tsx'] },
    {
      name: 'the question before a restart',
      // A window that becomes narrow moves the detail into a dialog, and closes the question.
      widths: [1440],
      address: 'servers?server=proc',
      ready: '.server-details',
      isModal: true,
      open: (page) => press(page.getByRole('button', { name: 'Restart…' })),
    },
  ],
  replicas: [{ name: 'the replicas', address: 'replicas', ready: '.panel' }],
}

/** Presses a control with the keyboard. */
export async function press(control: Locator): Promise<void> {
  await control.focus()
  await control.evaluate((openedBy) => Object.assign(globalThis, { openedBy }))
  await control.page().keyboard.press('Enter')
}

/** Opens a folded part, if it is not open. */
async function fold(page: Page, name: string | RegExp): Promise<void> {
  const summary = page.locator('summary').filter({ hasText: name }).first()
  await summary.waitFor()
  if (!(await summary.evaluate(({ parentElement }) => (parentElement as HTMLDetailsElement).open))) await press(summary)
}

async function openPalette(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Overview' }).focus()
  await page.evaluate(() => Object.assign(globalThis, { openedBy: document.activeElement }))
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).fill('pay')
  await page.getByRole('listbox', { name: 'Found' }).getByRole('option').nth(1).waitFor()
}

async function edit(page: Page, change: (text: string) => string): Promise<void> {
  await press(page.getByRole('button', { name: 'Edit' }))
  const field = page.locator('textarea.code')
  await field.fill(change(await field.inputValue()))
  await press(page.getByRole('button', { name: 'What would change' }))
}
