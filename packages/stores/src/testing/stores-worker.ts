import { appendFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteStores } from '../state/open-stores.ts'

/**
 * Runs a process on a file of stores, to be killed or to compete with others: `stores-worker.ts <job> <path> <name>`.
 * It prints a line immediately after each acknowledgement of the stores.
 */
const [job, path = '', name = ''] = process.argv.slice(2)
// The turn of a killed process must end soon, but the turn of a process that only pauses must not.
const lockOptions = job === 'compete' ? {} : { leaseMs: 500 }
const stores = openSqliteStores({ path, approvals: { maxKept: 1_000_000 }, lock: lockOptions })
const { approvals, counters, grants, lock, state } = stores

function say(...words: readonly (string | number | undefined)[]): void {
  writeSync(1, `${words.join(' ')}\n`)
}

const WIDE = { key: 'wide', max: 1_000_000, windowMs: 3_600_000 }

/** Asks, approves, uses, sets and counts until it is killed. First it uses the approvals of earlier processes. */
async function workUntilKilled(): Promise<void> {
  const left = await approvals.list({ status: 'approved', limit: 1_000_000 }, Date.now())
  for (const { id } of left) if (await approvals.consume(id, Date.now())) say('consumed', id)
  for (let i = 0; ; i++) {
    await state.set(`${name}-${i}`, { i })
    say('set', `${name}-${i}`)
    const binding = { tenant: undefined, user: `${name}-${i}`, tool: 't', definitionHash: 'd', inputHash: 'i', run: '' }
    const { id } = await approvals.request(binding, { i }, Date.now())
    await approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })
    say('decided', id)
    if (i % 3 !== 0 && (await approvals.consume(id, Date.now()))) say('consumed', id)
    if ((await counters.take([WIDE])).allowed) say('counted')
    if (await grants.take('grant', Date.now(), `${name}-${i}`)) say('granted')
    const lease = await lock.acquire('shared')
    say('token', lease.fencingToken)
    await lease.release()
  }
}

/** Works on the same entries as other processes, a fixed number of times. */
async function compete(): Promise<void> {
  await state.set(`ready-${name}`, true)
  while ((await state.list('ready-')).length < 8) await sleep(5)
  const ids = (await approvals.list({ status: 'approved', limit: 1000 }, Date.now())).map(({ id }) => id)
  for (let i = 0; i < 30; i++) {
    const [wide, fast] = [
      { ...WIDE, max: 100 },
      { key: 'fast', max: 3, windowMs: 40 },
    ]
    if ((await counters.take([wide])).allowed) say('wide')
    const { allowed, atMs } = await counters.take([fast])
    if (allowed) say('fast', atMs)
    const id = ids[i]
    if (id !== undefined && (await approvals.consume(id, Date.now()))) say('consumed', id)
    if (await grants.take('grant', Date.now(), `${name}-${i}`)) say('granted', `${name}-${i}`)
    if (await state.add(`slot-${i}`, name)) say('added', `slot-${i}`)
    if ((await state.take(`gift-${i}`)) !== undefined) say('taken', `gift-${i}`)
    if (i % 6 === 0) await takeTurn()
  }
  say('end')
}

async function takeTurn(): Promise<void> {
  const lease = await lock.acquire('shared')
  appendFileSync(`${path}.turns`, `in ${lease.fencingToken}\n`)
  await sleep(2)
  appendFileSync(`${path}.turns`, `out ${lease.fencingToken}\n`)
  await lease.release()
}

async function holdLock(): Promise<void> {
  const { fencingToken } = await lock.acquire('shared')
  say('token', fencingToken)
  await sleep(3_600_000)
}

switch (job) {
  case 'until-killed':
    await workUntilKilled()
    break
  case 'compete':
    await compete()
    stores.close()
    break
  case 'hold-lock':
    await holdLock()
    break
  case 'set':
    await state.set(name, 'from another process')
    stores.close()
    break
  case 'listen':
    // Neither the listener nor the open file keeps the process alive.
    state.subscribe(() => {})
    say('listening')
    break
  default:
    throw new Error(`there is no job "${job}"`)
}
