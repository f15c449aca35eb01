import { closeSync, constants, lstatSync, openSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf, messageOf } from '@toolgate/values'
import { CliError } from './exit.ts'
import { printable } from './io.ts'

/** Returns whether something is at a path. @throws {CliError} `usage` for a link whose target does not exist */
export function isTaken(file: string): boolean {
  if (statSync(file, { throwIfNoEntry: false })) return true
  if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return false
  throw new CliError(
    'usage',
    `${printable(file)} is a link to ${printable(readlinkSync(file))}, which does not exist. Nothing was changed.`,
    { hint: 'Remove the link, or make its target.' },
  )
}

/** Creates a file. Nothing is replaced, and no link is followed. @throws {CliError} `no` */
export function createFile(file: string, text: string): void {
  write(file, () => writeFileSync(file, text, { flag: 'wx' }))
}

/**
 * Writes a file that a person has named. One that is there is overwritten, and a link to one is followed.
 *
 * @throws {CliError} `usage` for a link whose target does not exist, `no` for a file that cannot be written
 */
export function writeOutput(file: string, text: string): void {
  if (!isTaken(file)) return createFile(file, text)
  // Without O_CREAT: the target of a link may be gone by now.
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
