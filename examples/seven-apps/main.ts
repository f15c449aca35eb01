// Seven apps share one group of tools, which needs a running browser. However many apps and users ask, the browser is
// probed once every ten seconds. When it closes, all seven apps stop offering its tools, and say why.
import { createGate } from '@toolgate/core'
import { type App, createAvailability, type Group } from '@toolgate/core/groups'

let nowMs = Date.parse('2026-11-22T09:00:00Z')
const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs }

let isBrowserOpen = true
let probes = 0
const groups: Record<string, Group> = {
  web: {
    tools: ['web:*'],
    title: 'Web pages',
    availableWhen: [
      () => {
        probes++
        return isBrowserOpen || { available: false, reason: 'the browser is closed' }
      },
    ],
    suggestion: 'Start it with "npm run browser".',
  },
  files: { tools: ['files:*'] },
}

/** Without shared groups, each of these would define the web tools again. */
const apps: Record<string, App> = {
  research: { import: ['web', 'files'], instructions: 'Cite what you found.' },
  writing: { import: ['files', 'web'], tools: [{ name: 'spellcheck', execute: () => 'no mistakes' }] },
  support: { import: ['web'], tools: ['tickets:*'] },
  sales: { import: ['web'], tools: ['tickets:find'], policy: { ask: ['web:submit'] } },
  legal: { import: ['web', 'files'], policy: { deny: ['web:submit'] } },
  travel: { import: ['web'] },
  audit: { import: ['files', { group: 'web', visibility: 'hidden' }] },
}

const availability = createAvailability(groups, { clock })
const ids = ['web:open', 'web:search', 'web:submit', 'files:read', 'files:write', 'tickets:find', 'tickets:close']
const gate = createGate({
  tools: Object.fromEntries(ids.map((id) => [id, { execute: () => `ran ${id}` }])),
  sources: [],
  groups,
  apps,
  availability,
  clock,
})

/** Every user of every app asks at once. */
async function everybodyLists(): Promise<void> {
  const users = ['vera', 'omar', 'lena'].flatMap((user) => gate.apps.list.map(({ name }) => ({ user, app: name })))
  await Promise.all(users.map(() => availability.check()))
  const views = await Promise.all(users.map(({ user, app }) => gate.view({ user }, { app })))
  for (const [i, { user, app }] of users.entries())
    if (user === 'vera') console.log(`    ${app.padEnd(9)} ${views[i]?.ids.join(', ') || '(nothing now)'}`)
}

async function at(seconds: number, what: string, expected: number): Promise<void> {
  nowMs = Date.parse('2026-11-22T09:00:00Z') + seconds * 1000
  console.log(`${String(seconds).padStart(3)} s  ${what}`)
  await everybodyLists()
  console.log(`    probes so far: ${probes}, for ${gate.apps.list.length} apps and 3 users each\n`)
  if (probes !== expected) throw new Error(`${probes} probes at ${seconds} s, expected ${expected}`)
}

await at(0, 'the browser is open', 1)
await at(9, 'nobody asks it again', 1)
isBrowserOpen = false
await at(10, 'it closes, and an answer of ten seconds is still good', 1)
await at(11, 'now it is asked, once', 2)

const legal = await gate.view({ user: 'vera' }, { app: 'legal' })
for (const tool of ['web:open', 'web:submit', 'tickets:find']) {
  const { text } = await legal.call({ tool })
  console.log(`legal calls ${tool}: ${text}`)
}

isBrowserOpen = true
console.log()
await at(22, 'it is open again, and so is everything', 3)
await gate.preferences.set({ user: 'vera' }, { groups: ['files'], tools: [] })
await at(23, 'vera switches files off for herself, in every app', 3)
availability.close()
await gate.close()
