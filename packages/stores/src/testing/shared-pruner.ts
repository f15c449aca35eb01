import { writeSync } from 'node:fs'
import { auditEntry } from '@toolgate/testing'
import { openPostgresStores } from '../postgres.ts'

/**
 * Runs a replica that records, signs and removes signed records until a test kills it: `shared-pruner.ts <url>`. It
 * prints a line for each round.
 */
const [url = ''] = process.argv.slice(2)

const stores = await openPostgresStores({ url })
const audit = await stores.openAudit({ replica: 'r', retainMs: 1, log: { everyMs: 100 }, onFault: console.error })

for (let round = 0; ; round++) {
  const calls = Array.from({ length: 300 }, (_, i) => `${audit.chain.incarnation}-${round}-${i}`)
  await Promise.all(calls.map(async (id) => audit.write(auditEntry({ tool_call_id: id }))))
  await Promise.all(calls.map(async (id) => audit.write(auditEntry({ event: 'tool_result', tool_call_id: id }))))
  await audit.sign()
  const removing = audit.prune()
  writeSync(1, `${round}\n`)
  await removing
}
