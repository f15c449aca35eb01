import { closeSync, constants, lstatSync, openSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf, messageOf } from '@toolgate/values'
import { CliError } from './exit.ts'
import { printable } from './io.ts'

/** Returns whether a file exists at a path. @throws {CliError} `usage` for a link without a target */
export function isTaken(file: string): boolean {
  if (statSync(file, { throwIfNoEntry: false })) return true
  if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return false
  throw new CliError(
    'usage',
    `${printable(file)} is a link to ${printable(readlinkSync(file))}, which does not exist. Nothing was changed.`,
    { hint: 'Remove the link, or make its target.' },
  )
}

/** Creates a file. Replaces no file and follows no link. @throws {CliError} `no` */
export function createFile(file: string, text: string): void {
  write(file, () => writeFileSync(file, text, { flag: 'wx' }))
}

/**
 * Writes a file that a person has named. Overwrites an existing file, and follows a link to one.
 *
 * @throws {CliError} `usage` for a link without a target, `no` for a file that cannot be written
 */
export function writeOutput(file: string, text: string): void {
  if (!isTaken(file)) return createFile(file, text)
  // Without O_CREAT, because the link's target may be gone by now.
  write(file, () => {
    const fd = openSync(file, constants.O_WRONLY | constants.O_TRUNC)
    try {
      writeFileSync(fd, text)
    } finally {
      closeSync(fd)
    }
  })
}

function write(file: string, action: () => void): void {
  try {
    action()
  } catch (cause) {
    throw new CliError('no', `${printable(file)} cannot be written (${errnoOf(cause) ?? messageOf(cause)}).`, { cause })
  }
}
