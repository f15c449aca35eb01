import { writeSync } from 'node:fs'
import { auditEntry } from '@toolgate/core/testing'
import { type Format, openAny } from './open-any.ts'

/**
 * A process that writes and prunes until it is killed by a test: `pruner.ts <format> <path>`. Each line it prints is the
 * number of the first record that is left.
 */
const [format, path = ''] = process.argv.slice(2)
const audit = openAny(format as Format, {
  path,
  retainMs: 30,
  rotate: { bytes: 4000 },
  checkpoints: { everyRecords: 10, everyMs: 5 },
  onFault: (error) => {
    throw error
  },
})

for (;;) {
  for (let i = 0; i < 15; i++) await audit.write(auditEntry({ event: 'tool_result', detail: 'x'.repeat(300) }))
  await audit.flush()
  await audit.prune()
  const [first] = await Array.fromAsync(audit.exportRecords({ beforeSeq: Number.MAX_SAFE_INTEGER }))
  writeSync(1, `${first?.seq}\n`)
}
