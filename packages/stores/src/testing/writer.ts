import { writeSync } from 'node:fs'
import type { AuditEntry } from '@toolgate/core/audit'
import { type Format, openAny } from './open-any.ts'

/**
 * Runs a process that makes and records calls, for a test that kills it or fills its disk: `writer.ts <format> <mode>
 * <path> <name> <count>`. Each printed line is the `tool_call_id` of a call, printed as soon as the audit has
 * acknowledged its `tool_call` (calls with the name `open` do not end). The last line is `end` and how the process
 * ended.
 */
const [format, mode, path = '', name = '', count = ''] = process.argv.slice(2)
const audit = openAny(format as Format, { path, mode: mode as 'batched' | 'required' })

const ENTRY: AuditEntry = {
  event: 'tool_call',
  wallMs: 0,
  tool: 'search',
  tool_call_id: '',
  policy_revision: 1,
  catalog_revision: 1,
}

async function writeOne(i: number): Promise<void> {
  await audit.write({ ...ENTRY, tool_call_id: `${name}-${i}`, detail: 'x'.repeat(i % 900) })
  if (mode === 'required') writeSync(1, `${name}-${i}\n`)
  if (name !== 'open') await audit.write({ ...ENTRY, event: 'tool_result', tool_call_id: `${name}-${i}` })
}

async function writeGroup(first: number, size: number): Promise<void> {
  await Promise.all(Array.from({ length: size }, async (_, i) => writeOne(first + i)))
  if (mode === 'required') return
  await audit.flush()
  writeSync(1, Array.from({ length: size }, (_, i) => `${name}-${first + i}\n`).join(''))
}

try {
  for (let i = 0; i < Number(count); i += 20) await writeGroup(i, 20)
  await audit.close()
  writeSync(1, 'end well\n')
} catch (error) {
  writeSync(1, `end ${(error as { code?: string }).code}\n`)
}
