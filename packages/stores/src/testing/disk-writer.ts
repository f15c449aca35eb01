import { writeSync } from 'node:fs'
import { errnoOf } from '@toolgate/values'
import { auditEntry } from '@toolgate/testing'
import { openPostgresStores } from '../postgres.ts'

/**
 * Runs a replica that records calls on its disk first, until a test kills it: `disk-writer.ts <url> <folder> <name>
 * [<key of inputs>]`. Each printed line is the `tool_call_id` of a call whose `tool_call` is acknowledged. It waits
 * while calls are refused.
 */
const [url = '', disk = '', name = '', key] = process.argv.slice(2)
const AT_ONCE = 20

const stores = await openPostgresStores({ url })
const audit = await stores.openAudit({
  replica: 'r',
  disk,
  log: { everyMs: 500 },
  ...(key !== undefined && { inputs: { keep: 'sealed', key } }),
})

/** Prints a line synchronously. The pipe is full while the test is slower. */
function say(text: string): void {
  for (let left = Buffer.from(text); left.length > 0;)
    try {
      left = left.subarray(writeSync(1, left))
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw error
    }
}

async function callAfterCall(worker: number): Promise<void> {
  for (let i = 0; ; i++) {
    const id = `${name}-${worker}-${i}`
    try {
      await audit.write(auditEntry({ tool_call_id: id, detail: 'x'.repeat(i % 900), input: { id } }))
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
      continue
    }
    say(`${id}\n`)
    await audit.write(auditEntry({ event: 'tool_result', tool_call_id: id })).catch(() => undefined)
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, (_, worker) => callAfterCall(worker)))
