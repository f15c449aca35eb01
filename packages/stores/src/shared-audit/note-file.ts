import { createReadStream } from 'node:fs'
import { ToolgateError } from '@toolgate/core'

/** A line of signatures: a key id of 4 bytes and at least the 64 of an Ed25519 signature, which a torn line does not have. */
const SIGNATURE = /^\u2014 \S+ (?=.{92})[\w+/]+={0,2}$/

/** Returns the checkpoints in lines, one after the other. What a crash has left half written is left out. */
async function* notesIn(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let text: string[] = []
  let signatures: string[] = []
  let isEnded = false
  for await (const line of lines) {
    if (isEnded && SIGNATURE.test(line)) {
      signatures.push(line)
      continue
    }
    if (isEnded) {
      if (signatures.length > 0) yield toNote(text, signatures)
      text = []
      signatures = []
    }
    // A checkpoint has no empty lines but the one before its signatures.
    isEnded = line === '' && text.length > 0
    if (line !== '') text.push(line)
  }
  if (signatures.length > 0) yield toNote(text, signatures)
}

function toNote(text: readonly string[], signatures: readonly string[]): string {
  return [...text, '', ...signatures, ''].join('\n')
}

/** Returns the notes in a file. @throws an error of the file system */
export function readNotes(path: string): AsyncGenerator<string> {
  return notesIn(linesOf(path))
}

/** More of a line would fill the memory. Records and leaves are much shorter. */
const MAX_LINE = 64 * 1024 * 1024

/**
 * Returns the lines of a text file. Only a line feed ends one: what an agent sends may have U+2028, which `node:readline` takes for
 * an end too.
 *
 * @throws {ToolgateError} `audit_invalid` for a line that no audit has
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const part of createReadStream(path, { highWaterMark: 1024 * 1024, encoding: 'utf8' })) {
    const lines = `${rest}${String(part)}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE) throw new ToolgateError('audit_invalid', `A line of ${path} is too long for an audit.`)
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
  if (rest !== '') yield rest
}
