import { writeSync } from 'node:fs'
import { auditEntry } from '@toolgate/testing'
import { type Format, openAny } from './open-any.ts'

/**
 * Runs a process that writes and prunes until a test kills it: `pruner.ts <format> <path>`. Each printed line is the
 * number of the first remaining record after a removal.
 */
const [format, path = ''] = process.argv.slice(2)
const audit = openAny(format as Format, {
  path,
  retainMs: 1,
  rotate: { bytes: 4000 },
  checkpoints: { everyRecords: 10, everyMs: 5 },
  onFault: (error) => {
    throw error
  },
})

let firstSeq = await readFirstSeq()
for (;;) {
  for (let i = 0; i < 15; i++) await audit.write(auditEntry({ event: 'tool_result', detail: 'x'.repeat(300) }))
  await audit.flush()
  await audit.prune()
  const seq = await readFirstSeq()
  if (seq > firstSeq) writeSync(1, `${seq}\n`)
  firstSeq = seq
}

/** Returns the number of the first record, or 0 for an empty audit. */
async function readFirstSeq(): Promise<number> {
  for await (const { seq } of audit.exportRecords()) return seq
  return 0
}
