import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openSqliteStores } from '../state/open-stores.ts'
import { runStoresWorker } from './run-stores-worker.ts'
import { scratchFolder } from './scratch-folder.ts'

/** The words that the worker prints. Each round of its work prints most of them. */
const WORDS = ['set', 'decided', 'consumed', 'counted', 'granted', 'token']
/** The maximum number of lines before a worker is killed: about four rounds of its work. */
const MAX_LINES = 20

/** Repeatedly kills a process that works on the stores, and compares its output with the stored data. */
export async function killStores(t: TestContext, kills: number): Promise<void> {
  const path = join(scratchFolder(t), 'state.db')
  const first = openSqliteStores({ path })
  const bound = { tenant: undefined, user: 'vera', tool: 't', definitionHash: 'd', run: undefined, clauses: [] }
  const life = { uses: 1_000_000, grantedBy: 'ada', grantedAt: Date.now(), expiresAt: Date.now() + 86_400_000 }
  await first.grants.create({ ...bound, ...life, id: 'grant', covers: 'tool' }, Date.now())
  first.close()
  const said = new Map<string, string[]>()
  const all = (word: string): readonly string[] => said.get(word) ?? []
  for (let i = 0; i < kills; i++) {
    // The last worker runs longest, so that each word is printed, wherever the others were killed.
    const killAfter = i === kills - 1 ? MAX_LINES : randomInt(1, MAX_LINES)
    const result = await runStoresWorker({ job: 'until-killed', path, name: `r${i}`, killAfter })
    assert.equal(result.code, null, `it was killed while it worked; it said ${result.problem}`)
    for (const word of WORDS) said.set(word, [...all(word), ...result.said(word)])
  }
  for (const word of WORDS) assert.ok(all(word).length > 0, `the worker never said "${word}"`)

  const { approvals, counters, grants, state, close } = openSqliteStores({ path, approvals: { maxKept: 1_000_000 } })
  t.after(close)
  const keys = new Set((await state.list('')).map(({ key }) => key))
  assert.deepEqual(
    all('set').filter((key) => !keys.has(key)),
    [],
  )
  const statuses = new Map(
    (await approvals.list({ limit: 1_000_000 }, Date.now())).map(({ id, status }) => [id, status]),
  )
  const lost = (word: string, states: readonly string[]): readonly string[] =>
    all(word).filter((id) => !states.includes(statuses.get(id) ?? ''))
  assert.deepEqual(lost('decided', ['approved', 'consumed']), [])
  assert.deepEqual(lost('consumed', ['consumed']), [])
  assert.equal(new Set(all('consumed')).size, all('consumed').length, 'no approval was used twice')
  const { remaining } = await counters.peek([{ key: 'wide', max: 1_000_000, windowMs: 3_600_000 }])
  assert.ok(1_000_000 - remaining - 1 >= all('counted').length, 'every use that was acknowledged counts')
  const { used = 0 } = (await grants.get('grant', Date.now())) ?? {}
  // A process may be killed after a use and before it says so.
  assert.ok(used >= all('granted').length && used <= all('granted').length + kills, 'every use of the grant counts')
  const tokens = all('token').map(Number)
  assert.ok(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] as number)))
}
