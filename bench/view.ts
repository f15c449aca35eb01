import { createGate, defineCaller, type Gate, type Policy } from '@toolgate/core'
import { measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

const LISTS: Policy = {
  allow: ['*:*'],
  deny: ['tag:danger', '*:delete_*', 'server3:*', 'server5:update_thing_25'],
  ask: ['*:send_*'],
}
const CONDITIONS: Policy = {
  allow: ['*:*'],
  deny: [
    { match: '*:delete_*', unless: "'admin' in caller.roles" },
    { match: 'tag:danger', when: "caller.chat.type != 'dm'" },
  ],
  ask: [{ match: '*:send_*', when: "caller.attributes.team != 'ops'" }],
}
/** A condition that asks the tool is decided for each tool. */
const TOOL_CONDITIONS: Policy = {
  ...CONDITIONS,
  deny: [...(CONDITIONS.deny ?? []), { match: '*:*', when: "'danger' in tool.tags && !('admin' in caller.roles)" }],
}

const tools = makeTools(1000)
let next = 0
let seen = 0

/** A caller whom the gate has not met: nothing of an earlier view can serve. */
function stranger(): {
  user: string
  roles: string[]
  chat: { id: string; type: string }
  attributes: { team: string }
} {
  return { user: `user-${next++}`, roles: ['viewer'], chat: { id: 'c1', type: 'group' }, attributes: { team: 'sales' } }
}

async function viewsOfStrangers(gate: Gate, count: number, withIds: boolean, options?: { app: string }): Promise<void> {
  for (let i = 0; i < count; i++) {
    const view = await gate.view(stranger(), options)
    seen += withIds ? view.ids.length : Number(view.has('server0:read_thing_0'))
  }
}

const [lists, conditions, toolConditions] = [LISTS, CONDITIONS, TOOL_CONDITIONS].map((policy) =>
  createGate({ tools, policy }),
) as [Gate, Gate, Gate]
const known = defineCaller(stranger())

/** One of seven apps that share their groups, with tools and a policy of its own, while many users have something switched off. */
const servers = Array.from({ length: 10 }, (_, i) => `server${i}`)
const withApps = createGate({
  tools,
  policy: LISTS,
  groups: Object.fromEntries(servers.map((name) => [name, { tools: [`${name}:*`] }])),
  apps: Object.fromEntries(
    servers
      .slice(0, 7)
      .map((name, i) => [
        `app${i}`,
        { import: servers.slice(0, i + 1), tools: [`${name}:*`, 'tag:read'], policy: { deny: ['*:purge_*'] } },
      ]),
  ),
})
for (let i = 0; i < 1000; i++)
  await withApps.preferences.set({ user: `other-${i}` }, { groups: ['server2'], tools: [`server1:read_thing_${i}`] })
const APP = { app: 'app6' }
const hidden = new Set(tools.filter((_, i) => i % 10 === 3).map(({ id }) => id))

const figures = await measure([
  {
    name: 'a plain loop',
    run(count) {
      for (let i = 0; i < count; i++) {
        const visible: string[] = []
        for (const tool of tools) if (!hidden.has(tool.id) && tool.tags.includes('read')) visible.push(tool.id)
        seen += visible.length
      }
    },
  },
  { name: 'new caller: lists, tags and globs', budget: '10 µs', run: (count) => viewsOfStrangers(lists, count, false) },
  { name: 'new caller: and its list of ids', run: (count) => viewsOfStrangers(lists, count, true) },
  {
    name: 'new caller: with 3 CEL conditions',
    budget: '100 µs',
    run: (count) => viewsOfStrangers(conditions, count, false),
  },
  { name: 'new caller: a condition over each tool', run: (count) => viewsOfStrangers(toolConditions, count, false) },
  {
    name: 'the same caller again',
    budget: '0.2 µs',
    async run(count) {
      for (let i = 0; i < count; i++) seen += Number((await conditions.view(known)).has('server0:read_thing_0'))
    },
  },
  {
    name: 'new caller in an app: lists, tags and globs',
    budget: '10 µs',
    run: (count) => viewsOfStrangers(withApps, count, false, APP),
  },
  {
    name: 'the same caller again in an app',
    budget: '0.2 µs',
    async run(count) {
      for (let i = 0; i < count; i++) seen += Number((await withApps.view(known, APP)).has('server0:read_thing_0'))
    },
  },
  {
    name: 'an equal caller in a new object',
    async run(count) {
      for (let i = 0; i < count; i++) seen += Number((await conditions.view({ ...known })).has('server0:read_thing_0'))
    },
  },
])
printFigures('A view of 1,000 tools', figures, 'a plain loop')
if (seen === 0) throw new Error('nobody saw anything')
