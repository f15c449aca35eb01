import { chmodSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

/**
 * Replaces a file at once: a reader, a crash or a kill finds the old text or the new one, whole. A link is replaced, and never
 * written through.
 */
export function replaceFile(file: string, text: string, mode = 0o600): void {
  const draft = `${file}.${process.pid}.tmp`
  try {
    rmSync(draft, { force: true })
    // It may hold a key.
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    chmodSync(draft, mode)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

/** Replaces the text of a file of the person's own at once. Its mode stays, and a link to it stays a link. */
export function rewriteFile(file: string, text: string): void {
  const target = realpathSync(file)
  replaceFile(target, text, statSync(target).mode & 0o777)
}
