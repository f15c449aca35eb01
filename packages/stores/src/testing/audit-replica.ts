import { auditEntry } from '@toolgate/testing'
import { openPostgresStores } from '../postgres.ts'

/**
 * Runs a replica that records one open call, signs the log, prints a line, and continues until it is killed. Arguments:
 * URL, name, interval.
 */
const [url = '', replica = '', everyMs = ''] = process.argv.slice(2)
const stores = await openPostgresStores({ url })
const audit = await stores.openAudit({ replica, log: { everyMs: Number(everyMs) } })
await audit.write(auditEntry({ tool_call_id: `${replica}-open` }))
await audit.sign()
console.log('signed')
setInterval(() => undefined, 60_000)
