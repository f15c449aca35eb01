import { chmodSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

/**
 * Replaces a file in one step: a reader, a crash or a kill finds either the old text or the new one. A link is
 * replaced, and never written through.
 */
export function replaceFile(file: string, text: string, mode = 0o600): void {
  const draft = `${file}.${process.pid}.tmp`
  try {
    rmSync(draft, { force: true })
    // The file may contain a key.
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    chmodSync(draft, mode)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

/** Replaces the text of a user's own file in one step. Its mode stays, and a link to it stays a link. */
export function rewriteFile(file: string, text: string): void {
  const target = realpathSync(file)
  replaceFile(target, text, statSync(target).mode & 0o777)
}
