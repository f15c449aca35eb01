import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Returns the secret in a file. It is made at first use, whole or not at all, by whichever process is first. */
export function secretAt(path: string, make: () => string): string {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${randomUUID()}`
    writeFileSync(draft, make(), { flag: 'wx', mode: 0o600, flush: true })
    try {
      linkSync(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(path, 'utf8')
}
