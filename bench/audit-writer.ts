import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSealer } from '@toolgate/core/audit'
import { entryOf as entry } from './audit-entry.ts'
import { openPostgresStores, statement } from '@toolgate/stores/postgres'

/**
 * One process of `audit-replicas.ts`, which writes records for a while once it is told to, and answers with how many the database has:
 * `audit-writer.ts <floor|shared|disk> <url> <name> <folder> <ms>`.
 */
const [mode = '', url = '', name = '', folder = '', ms = ''] = process.argv.slice(2)
const AT_ONCE = 256
const GROUP = 100
const REFUSED_MS = 5

const entryOf = (i: number) => entry(i, { call: `${name}${i >> 1}` })

const stores = await openPostgresStores({ url })

/** The same bytes, as groups of rows and nothing else: no chain, no order, no look at what is there. */
async function writePlainly(isOver: () => boolean): Promise<number> {
  const sealer = createSealer()
  const texts = Array.from({ length: GROUP }, (_, i) => sealer.seal(entryOf(i)))
  const events = texts.map((_, i) => entryOf(i).event)
  const ats = texts.map((_, i) => entryOf(i).wallMs)
  const insert = statement(
    'INSERT INTO toolgate.floor SELECT $1::int, $2::bigint + i, at, event, record FROM unnest($3::bigint[], $4::text[], $5::text[]) WITH ORDINALITY AS g (at, event, record, i)',
  )
  let count = 0
  for (; !isOver(); count += GROUP) await stores.database.query(insert, [process.pid, count, ats, events, texts])
  return count
}

async function writeRecords(isOver: () => boolean): Promise<number> {
  const audit = await opened
  let next = 0
  const writer = async () => {
    while (!isOver()) {
      const i = next++
      // Refused while the database is behind: then the same is tried again, as a caller would.
      while (
        !(await audit.write(entryOf(i)).then(
          () => true,
          () => false,
        ))
      )
        await sleep(REFUSED_MS)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, writer))
  while (
    !(await audit.flush().then(
      () => true,
      () => false,
    ))
  );
  return next
}

const disk = mode === 'disk' ? { disk: folder } : {}
const opened = stores.openAudit({ replica: name, ...disk })
await opened
process.send?.('ready')
await once(process, 'message')
const begin = performance.now()
const cpu = process.cpuUsage()
const isOver = () => performance.now() - begin > Number(ms)
const count = await (mode === 'floor' ? writePlainly(isOver) : writeRecords(isOver))
const { user, system } = process.cpuUsage(cpu)
process.send?.({ perSecond: (count * 1000) / (performance.now() - begin), cpuUs: (user + system) / count })
await stores.close()
process.disconnect()
