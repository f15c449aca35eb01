import { createGate, defineCaller } from '@toolgate/core'
import { createAvailability, type Group } from '@toolgate/core/groups'
import { measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

/** A thousand groups, each with a probe that takes long: what do those who list and call feel of it? */
const COUNT = 1000
const tools = makeTools(COUNT)
let flips = 0
let seen = 0
const never = () => new Promise<boolean>(() => {})

function groupsOf(ask: (i: number) => Group['availableWhen'] & object): ReadonlyMap<string, Group> {
  return new Map(tools.map(({ id }, i): [string, Group] => [`g${i}`, { tools: [id], availableWhen: ask(i) }]))
}

const listeners: (() => void)[] = []
const works = new Set(Array.from({ length: COUNT }, (_, i) => i))
const slow = groupsOf((i) => [{ key: `slow${i}`, timeoutMs: 5000, ask: never }])
const live = groupsOf((i) => [
  {
    key: `live${i}`,
    ask: () => works.has(i),
    subscribe(listener) {
      listeners[i] = listener
      return () => {}
    },
  },
])
function flip(): void {
  const i = flips++ % COUNT
  if (!works.delete(i)) works.add(i)
  listeners[i]?.()
}

const open = (groups: ReadonlyMap<string, Group>) => {
  const availability = createAvailability(groups)
  void availability.start()
  return { availability, gate: createGate({ tools, groups, availability }) }
}
const [asking, turning] = [open(slow), open(live)]
const plain = createGate({ tools })
const vera = defineCaller({ user: 'vera' })

const list = async (gate: ReturnType<typeof createGate>) => {
  seen += (await gate.view(vera)).ids.length
}

printFigures(
  `${COUNT} groups with a probe each`,
  await measure([
    {
      name: 'a list without groups',
      async run(count) {
        for (let i = 0; i < count; i++) await list(plain)
      },
    },
    {
      name: 'a list while a thousand slow probes are asked',
      budget: '1 ms',
      async run(count) {
        for (let i = 0; i < count; i++) await list(asking.gate)
      },
    },
    {
      name: 'a group that turns: its state, and who is told',
      budget: '10 µs',
      run(count) {
        for (let i = 0; i < count; i++) flip()
      },
    },
    {
      name: 'a list after each turn of a group',
      budget: '1 ms',
      async run(count) {
        for (let i = 0; i < count; i++) {
          flip()
          await list(turning.gate)
        }
      },
    },
  ]),
  'a list without groups',
)
asking.availability.close()
turning.availability.close()
if (seen === 0) throw new Error('nothing was listed')
