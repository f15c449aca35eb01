import { createGate } from '@toolgate/core'
import { measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

const tools = makeTools(1000)
const gate = createGate({
  tools,
  policy: {
    deny: ['tag:danger', { match: '*:delete_*', unless: "'admin' in caller.roles" }],
    ask: ['*:send_*'],
  },
})
const view = await gate.view({ user: 'vera', roles: ['viewer'] })
const ids = tools.map(({ id }) => id)
const expected = new Set(view.ids)
let visible = 0

/** Every id in turn, so that neither a cache nor the branch predictor knows what comes. */
function each(count: number, ask: (id: string) => boolean): void {
  for (let i = 0; i < count; i++) if (ask(ids[(i * 7) % 1000] ?? '')) visible++
}

const figures = await measure([
  { name: 'Set.has', run: (count) => each(count, (id) => expected.has(id)) },
  { name: 'view.has: may this caller see this tool', budget: '0.1 µs', run: (count) => each(count, view.has) },
  { name: 'view.get: the tool, if visible', run: (count) => each(count, (id) => view.get(id) !== undefined) },
  {
    name: 'view.explain: every reason, for people',
    run: (count) => each(count, (id) => view.explain(id).outcome === 'allow'),
  },
])
printFigures('Deciding one tool on an existing view of 1,000', figures, 'Set.has')
if (visible === 0 || expected.size === 0 || expected.size === 1000) throw new Error('the view shows all or nothing')
