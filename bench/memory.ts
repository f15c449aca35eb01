import { type Caller, createGate, type Policy, type View } from '@toolgate/core'
import { digits, heapMb, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

/** What the views of many callers keep in memory, and that it does not grow with callers who never come back. */
const CALLERS = 10_000
const TOOLS = 1000
const BUDGET_MB = 20

const tools = makeTools(TOOLS)
const LISTS: Policy = { allow: ['*:*'], deny: ['tag:danger', '*:delete_*', 'server3:*'], ask: ['*:send_*'] }
const CONDITIONS: Policy = {
  ...LISTS,
  deny: [
    { match: '*:delete_*', unless: "'admin' in caller.roles" },
    { match: 'tag:danger', when: "caller.chat.type != 'dm'" },
  ],
  ask: [{ match: '*:send_*', when: "caller.attributes.team != 'ops'" }],
}
/** Hides another tool from each of the first thousand callers, and from the next thousand again. */
const ONE_EACH: Policy = {
  deny: [{ match: '*', when: ({ caller, tool }) => tool.name.endsWith(`_${String(caller.attributes?.['number'])}`) }],
}

const callerOf = (i: number): Caller => ({
  user: `user-${i}`,
  tenant: 'acme',
  roles: ['viewer'],
  chat: { id: `chat-${i}`, type: 'group' },
  attributes: { team: 'sales', number: i % TOOLS },
})

interface Row {
  readonly what: string
  readonly mb: number
  readonly budget: string
}

/** Gives what is kept of a view for each of many callers, after `use` has looked at it. */
async function keptBy(what: string, policy: Policy, use: (view: View) => unknown, budget = ''): Promise<Row> {
  const gate = createGate({ tools, policy })
  use(await gate.view({ ...callerOf(0), user: 'warm' }))
  const before = await heapMb()
  for (let i = 0; i < CALLERS; i++) use(await gate.view(callerOf(i)))
  const mb = (await heapMb()) - before
  if ((await gate.view(callerOf(0))).size === 0) throw new Error('the views show nothing')
  return { what, mb, budget }
}

const asked = (view: View) => view.has('server0:read_thing_0')
const listed = (view: View) => view.ids.length
const described = (view: View) => [view.ids.length, view.fingerprint]
const budget = `${BUDGET_MB} MB`

const rows = [
  await keptBy('asked for one tool; lists, tags and globs', LISTS, asked, budget),
  await keptBy('asked for one tool; 3 CEL conditions', CONDITIONS, asked, budget),
  await keptBy('listed; lists, tags and globs', LISTS, listed, budget),
  await keptBy('listed; 3 CEL conditions', CONDITIONS, listed, budget),
  await keptBy('listed and fingerprinted; 3 CEL conditions', CONDITIONS, described, budget),
  await keptBy('listed; a thousand different lists', ONE_EACH, listed),
]
printTable(
  `Memory of ${CALLERS.toLocaleString('en')} cached views of ${TOOLS.toLocaleString('en')} tools`,
  ['what', 'MB', 'KB a view', 'budget'],
  rows.map(({ what, mb, budget: most }) => [what, digits(mb), digits((mb * 1000) / CALLERS), most]),
)

/** Callers who come once: what is kept of them is bounded, so the second half adds nothing. */
const passing = createGate({ tools, policy: CONDITIONS })
const kept: string[][] = []
let met = 0
const empty = await heapMb()
for (const count of [10_000, 20_000, 40_000, 80_000, 160_000]) {
  for (; met < count; met++) asked(await passing.view(callerOf(met)))
  kept.push([count.toLocaleString('en'), digits((await heapMb()) - empty)])
}
printTable('Memory after callers who each come once', ['callers', 'MB kept'], kept)

const over = rows.filter(({ mb, budget: most }) => most !== '' && mb > BUDGET_MB)
for (const { what, mb } of over) console.log(`\nover its budget of ${BUDGET_MB} MB: ${what}: ${digits(mb)} MB`)
