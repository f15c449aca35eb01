import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { type CatalogSnapshot, itemsOfSnapshot } from '@toolgate/change'
import { errnoOf, messageOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import { ConfigFileError } from '../../config/problems.ts'

const MAX_BYTES = 128 * 1024 * 1024

/** Reads a catalog that `toolgate snapshot` has written. @throws {ConfigFileError} for a file that cannot be used */
export function readCatalogFile(file: string): CatalogSnapshot {
  const text = readSmallFile(file, MAX_BYTES)
  try {
    const snapshot: unknown = readOwnJson(text, 'exact')
    itemsOfSnapshot(snapshot)
    return snapshot as CatalogSnapshot
  } catch (error) {
    throw problemOf(file, messageOf(error))
  }
}

/** @throws {ConfigFileError} for a file that is missing or too large */
export function readSmallFile(file: string, maxBytes: number): string {
  try {
    const stats = statSync(file)
    if (!stats.isFile()) throw new Error('it is not a file')
    if (stats.size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    const why = errnoOf(error) === 'ENOENT' ? 'there is no such file' : messageOf(error)
    throw problemOf(file, `${path.basename(file)} cannot be read: ${why}`)
  }
}

/** Returns the error for a file as a whole. */
function problemOf(file: string, message: string): ConfigFileError {
  return new ConfigFileError([{ file, line: 1, column: 1, path: '', message }])
}
