/**
 * A reporter for scripts/test.js: a line for each test as it ends, `pass` or `fail`, so that a process
 * that dies on the way leaves what it had done. Skipped and todo tests count as failed: there are none. A line
 * `time <milliseconds> <file>` follows each test or suite that is in no other.
 */
export default async function* results(events) {
  for await (const { type, data } of events) {
    if ((type === 'test:pass' || type === 'test:fail') && data.nesting === 0 && data.file)
      yield `time ${data.details.duration_ms} ${data.file}\n`
    // A file without tests is reported as a test of that name.
    if (data?.details?.type === 'suite' || data?.name?.endsWith('.test.ts')) continue
    if (type === 'test:pass') yield data.skip || data.todo ? `fail ${data.name} (skipped)\n` : `pass ${data.name}\n`
    if (type === 'test:fail') yield `fail ${data.name}\n`
  }
}
