import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/values'
import { replaceFile } from '../replace-file.ts'

/**
 * Writes a file into the `.toolgate` folder beside a configuration, in one step, readable only by its owner. Git
 * ignores the folder. An existing link or another user's file is replaced, and never written through.
 */
export function writeOwn(file: string, text: string): void {
  const folder = path.dirname(file)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(path.join(folder, '.gitignore'), '*\n', { flag: 'wx' })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
  }
  replaceFile(file, text)
}

/**
 * Returns the text of a file that `writeOwn` wrote. `undefined` unless its owner is this user or the configuration's
 * owner.
 */
export function readOwn(file: string, config: string): string | undefined {
  const fd = openSync(file, 'r')
  try {
    const { uid, mode } = fstatSync(fd)
    // Windows has no such owners and modes.
    const me = process.getuid?.()
    const isOwn = me === undefined || ([me, statSync(config).uid].includes(uid) && (mode & 0o022) === 0)
    return isOwn ? readFileSync(fd, 'utf8') : undefined
  } finally {
    closeSync(fd)
  }
}
