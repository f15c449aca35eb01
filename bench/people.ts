import { createHash } from 'node:crypto'
import { createGate, defineCaller } from '@toolgate/core'
import { rightsKeyOf } from '@toolgate/change/internal'
import { People } from '../packages/gateway/src/auth/people.ts'
import { apiOf, heartOf } from '../packages/gateway/src/testing/heart.ts'
import { measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

/** Measures the cost of noting people, and of listing 5,000 of them. */
const COUNT = 5000
const clock = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }
const people = new People({ clock, log: () => {} })
const credentials = Array.from({ length: COUNT }, (_, i) => ({
  id: `${i}`,
  for: 'mcp' as const,
  issuer: 'https://id.example',
  client: 'app',
  caller: defineCaller({ user: `corp/${i}`, tenant: `t${i % 20}`, roles: [`role-${i % 12}`, 'staff'] }),
}))
for (const one of credentials) people.noteRequest(one)

const gate = createGate({
  tools: makeTools(200),
  policy: { allow: ['*'], deny: [{ match: '*', unless: "'staff' in caller.roles || caller.user == 'corp/7'" }] },
})
const owner = { user: 'owner', roles: ['approver'] }
const callers = [{ keyHash: createHash('sha256').update('owner').digest(), for: 'console' as const, caller: owner }]
const api = apiOf(heartOf({ gate, callers, clock, door: { people } }))
const headers = { host: '127.0.0.1:8787', authorization: 'Bearer owner' }
const get = async (path: string): Promise<unknown> => {
  const answer = await api.fetch(new Request(`http://127.0.0.1:8787${path}`, { headers }))
  if (answer.status !== 200) throw new Error(await answer.text())
  return answer.json()
}
// The lists are made once, as after a change of the rules.
const body = await get('/api/people')
const keyOf = await rightsKeyOf(gate)
const times = new WeakMap<object, number>(credentials.map(({ caller }) => [caller, Date.now()]))
let sink = 0

printFigures(
  'Noting the sender of a request who was noted in this minute',
  await measure([
    {
      name: 'comparing two times',
      run(count) {
        for (let i = 0; i < count; i++) {
          const { caller } = credentials[i % COUNT] ?? {}
          if (caller && Date.now() - (times.get(caller) ?? 0) < 60_000) sink++
        }
      },
    },
    {
      name: 'noting them',
      run(count) {
        for (let i = 0; i < count; i++) people.noteRequest(credentials[i % COUNT] ?? (credentials[0] as never))
      },
      budget: '≤ 3 × floor',
    },
  ]),
  'comparing two times',
)
printFigures(
  `${COUNT} people`,
  await measure(
    [
      {
        name: 'writing and parsing the JSON of GET /api/people',
        run(count) {
          for (let i = 0; i < count; i++) sink += Object.keys(JSON.parse(JSON.stringify(body)) as object).length
        },
      },
      {
        name: 'GET /api/people',
        async run(count) {
          for (let i = 0; i < count; i++) await get('/api/people')
        },
        budget: '≤ 20 × floor',
      },
      {
        name: 'GET /api/matrix',
        async run(count) {
          for (let i = 0; i < count; i++) await get('/api/matrix')
        },
      },
      {
        name: 'their groups of equal rights',
        run(count) {
          for (let i = 0; i < count; i++) sink += new Set(credentials.map(({ caller }) => keyOf(caller))).size
        },
      },
    ],
    { rounds: 5, roundMs: 200 },
  ),
  'writing and parsing the JSON of GET /api/people',
)
if (sink === -1) console.log(sink)
await gate.close()
