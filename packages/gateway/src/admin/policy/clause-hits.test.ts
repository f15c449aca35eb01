import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGate, defineTool, type Gate, memoryAudit, type Policy } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { clauseText } from '@toolgate/core/policy'
import { type ClauseCountStore, systemClock } from '@toolgate/core/stores'
import { openSqliteStores } from '@toolgate/stores/sqlite'
import fc from 'fast-check'
import { ClauseHits, type ClauseHitsDeps } from './clause-hits.ts'

const TOOLS = ['mail', 'read', 'write']
const tools = TOOLS.map((name) => defineTool({ name, execute: () => name }))
const USERS = { vera: ['viewer'], ada: ['admin'] } as const
const ALLOW: Policy = { allow: ['read', { match: '*', when: "'admin' in caller.roles" }] }
const DENY: Policy = {
  deny: [
    { id: 'no-mail', match: 'mail', mode: 'shadow' },
    { id: 'no-write', match: 'write', unless: "'admin' in caller.roles" },
  ],
}
/** The same two policies, at other places of the file. */
const FILES: readonly (readonly Policy[])[] = [
  [ALLOW, DENY],
  [{ name: 'new', deny: [{ id: 'new', match: 'none:*' }] }, DENY, ALLOW],
]
/** Which recorded calls each clause has held for, by its selectors. */
const HOLDS: Readonly<Record<string, (record: AuditRecord) => boolean>> = {
  read: ({ tool }) => tool === 'read',
  '*': ({ tool, user_id }) => tool !== 'read' && user_id === 'ada',
  mail: ({ tool }) => tool === 'mail',
  write: ({ tool, user_id }) => tool === 'write' && user_id !== 'ada',
  'none:*': () => false,
}
const TERMINAL = new Set(['tool_result', 'tool_blocked'])
const EVERY_MS = 3
/** Longer than any test: what is written is written when a test says so. */
const NEVER_MS = 2 ** 30

function openReplica(t: TestContext, path: string, file: readonly Policy[]) {
  const stores = openSqliteStores({ path })
  const audit = memoryAudit()
  const gate = createGate({ tools, audit, policy: file, onWarning: () => {} })
  const hits = open({ gate, store: stores.clauses, everyMs: EVERY_MS })
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    await gate.close()
    await hits.close()
    stores.close()
  }
  t.after(close)
  return { gate, audit, hits, close }
}

function open(deps: Pick<ClauseHitsDeps, 'gate' | 'store' | 'everyMs'> & Partial<ClauseHitsDeps>): ClauseHits {
  return new ClauseHits({ clock: systemClock, onFault: (error) => assert.fail(String(error)), ...deps })
}

function tempFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-clauses-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function call(gate: Gate, user: keyof typeof USERS, tool: string): Promise<void> {
  await (await gate.view({ user, roles: USERS[user] })).call({ tool })
}

const OPERATION = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constant('call'), fc.nat(2), fc.constantFrom('vera', 'ada'), fc.nat(2)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('restart'), fc.nat(2), fc.constant('vera'), fc.nat(1)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('reload'), fc.nat(2), fc.constant('vera'), fc.nat(1)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('read'), fc.nat(2), fc.constant('vera'), fc.nat(1)) },
)

describe('ClauseHits', () => {
  it('is at every replica what the records of all of them count, over restarts and edits of the file', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(OPERATION, { maxLength: 40 }), async (operations) => {
        const path = join(tempFolder(t), 'state.db')
        const replicas = [0, 1, 2].map(() => openReplica(t, path, FILES[0] ?? []))
        const records: AuditRecord[] = []
        for (const [does, at, user, n] of operations) {
          const replica = replicas[at] as (typeof replicas)[number]
          if (does === 'call') await call(replica.gate, user as keyof typeof USERS, TOOLS[n] as string)
          else if (does === 'reload') replica.gate.setPolicy(FILES[n] ?? [])
          else if (does === 'read') {
            await sleep(2 * EVERY_MS)
            await replica.hits.read()
          } else {
            await replica.close()
            records.push(...replica.audit.query({ limit: 1000 }))
            replicas[at] = openReplica(t, path, FILES[n] ?? [])
          }
        }
        for (const { audit } of replicas) records.push(...audit.query({ limit: 1000 }))
        const ended = records.filter(({ event }) => TERMINAL.has(event))
        await Promise.all(replicas.map(({ close }) => close()))
        const last = openReplica(t, path, FILES[1] ?? [])
        const { clauses } = await last.hits.read()
        for (const { ref, hits } of clauses)
          assert.equal(hits, ended.filter((record) => HOLDS[ref.match]?.(record)).length, clauseText(ref))
        await last.close()
      }),
      { numRuns: 25 },
    )
  })

  it('has what this process counted and did not write yet, and since when the first one counted', async (t) => {
    const path = join(tempFolder(t), 'state.db')
    const first = openReplica(t, path, [ALLOW])
    await call(first.gate, 'vera', 'read')
    await first.close()
    const stores = openSqliteStores({ path })
    t.after(() => stores.close())
    const gate = createGate({ tools, policy: [ALLOW, DENY] })
    const hits = open({ gate, store: stores.clauses, everyMs: NEVER_MS })
    await call(gate, 'vera', 'read')
    const { clauses } = await hits.read()
    const read = clauses.find(({ ref }) => ref.match === 'read')
    const mail = clauses.find(({ ref }) => ref.match === 'mail')
    assert.deepEqual([read?.hits, mail?.hits], [2, 0])
    const [before] = first.gate.coverage()
    assert.equal(read?.countedSince, before?.countedSince)
    assert.ok((mail?.countedSince ?? 0) >= (before?.countedSince ?? 0))
    assert.equal(read?.lastHitAt, gate.coverage().find(({ ref }) => ref.match === 'read')?.lastHitAt)
    await hits.close()
  })

  it('reads the clauses at some paths, and asks the store for no others', async (t) => {
    const stores = openSqliteStores({ path: join(tempFolder(t), 'state.db') })
    t.after(() => stores.close())
    const gate = createGate({ tools, policy: [ALLOW, DENY] })
    const asked: (readonly string[])[] = []
    const store: ClauseCountStore = {
      add: (counts, batch) => stores.clauses.add(counts, batch),
      read(ids) {
        asked.push(ids)
        return stores.clauses.read(ids)
      },
    }
    const hits = open({ gate, store, everyMs: NEVER_MS })
    await call(gate, 'vera', 'write')
    const { clauses } = await hits.read(new Set(['policy[1].deny[1]', 'policy[9]']))
    assert.deepEqual(
      clauses.map(({ path, hits: count }) => [path, count]),
      [['policy[1].deny[1]', 1]],
    )
    assert.deepEqual(asked, [clauses.map(({ id }) => id)])
    await hits.close()
  })

  it('adds up the calls that a shadow could not judge, over restarts', async (t) => {
    const path = join(tempFolder(t), 'state.db')
    const policy: Policy = { mode: 'shadow', deny: [{ match: 'mail', input: "'untrusted' in run.labels" }] }
    const unjudgedIn = async (calls: number) => {
      const { gate, hits, close } = openReplica(t, path, [policy])
      const view = await gate.view({ user: 'vera' })
      for (let i = 0; i < calls; i++) await view.call({ tool: 'mail', run: { id: 'lost', resumed: true } })
      const { clauses } = await hits.read()
      await close()
      return clauses.map(({ hits: held, unjudged }) => [held, unjudged])
    }
    assert.deepEqual(await unjudgedIn(0), [[0, undefined]])
    assert.deepEqual(await unjudgedIn(2), [[0, 2]])
    assert.deepEqual(await unjudgedIn(1), [[0, 3]])
  })

  it('sends a batch again until the store has answered, and no hit twice', async (t) => {
    const stores = openSqliteStores({ path: join(tempFolder(t), 'state.db') })
    t.after(() => stores.close())
    const gate = createGate({ tools, policy: ALLOW })
    const sent: number[] = []
    let isBroken = true
    const store: ClauseCountStore = {
      read: (ids) => stores.clauses.read(ids),
      async add(counts, batch) {
        sent.push(batch.number)
        // As a connection that is lost after the commit.
        if (sent.filter((number) => number === batch.number).length === 1) await stores.clauses.add(counts, batch)
        if (isBroken) throw new Error('the answer is lost')
      },
    }
    const faults: unknown[] = []
    const hits = open({ gate, store, everyMs: NEVER_MS, onFault: (error) => void faults.push(error) })
    await call(gate, 'vera', 'read')
    const own = await hits.read()
    assert.equal(own.isOwn, undefined)
    await call(gate, 'vera', 'read')
    await hits.close()
    assert.equal(faults.length, 1)
    isBroken = false
    const { clauses } = await hits.read()
    assert.equal(clauses[0]?.hits, 2)
    await hits.close()
    assert.equal((await stores.clauses.read([clauses[0].id]))[0]?.hits, 2)
    assert.deepEqual(sent, [1, 1])
  })

  it('has the counts of this process where the store does not answer', async () => {
    const gate = createGate({ tools, policy: ALLOW })
    const broken = () => Promise.reject(new Error('no store'))
    const faults: unknown[] = []
    const hits = open({ gate, store: { add: broken, read: broken }, onFault: (error) => void faults.push(error) })
    await call(gate, 'vera', 'read')
    assert.deepEqual(await hits.read(), { clauses: gate.coverage(), isOwn: true })
    assert.equal(faults.length, 1)
    await hits.close()
  })

  it('has the counts of this process where there is no store', async () => {
    const gate = createGate({ tools, policy: ALLOW })
    await call(gate, 'ada', 'mail')
    const hits = open({ gate, store: undefined })
    assert.deepEqual(await hits.read(), { clauses: gate.coverage() })
    await hits.close()
  })
})
