import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Returns a new folder that is removed when the test ends. */
export function scratchFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-stores-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
